"""The methods of PredictionService and ModelService."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from core.errors import invalid
from frontend_tfserving.classes import classes_of, values_of
from frontend_tfserving.prediction import checked_signature, received, send
from frontend_tfserving.rpc import messages
from frontend_tfserving.rpc.described import chosen, metadata_of, spec_of, status_of
from frontend_tfserving.rpc.examples import inputs_of
from frontend_tfserving.rpc.tensors import proto_of, tensor_of
from frontends.grpc.extra_methods import unary
from frontends.grpc.method import Method, UnaryMethod

if TYPE_CHECKING:
    from core.config import Signature
    from core.server import InferenceServer
    from core.tensor import Tensor

_PREDICTION = "/tensorflow.serving.PredictionService/"
_MODELS = "/tensorflow.serving.ModelService/"
_METHODS = {"tensorflow/serving/classify": "classify", "tensorflow/serving/regress": "regress"}


def methods(server: InferenceServer) -> tuple[Method, ...]:
    """Return the methods for the gRPC port of a server."""
    service = PredictionService(server)

    def method(path: str, category: str, request: str, answer: Callable[[Any], Any]) -> UnaryMethod:
        function = unary(getattr(messages, request), answer)
        return UnaryMethod(path, category, function, changes=category == "inference")

    def now(work: Callable[[InferenceServer, Any], Any]) -> Callable[[Any], Awaitable[Any]]:
        async def answer(request: Any) -> Any:
            return work(server, request)

        return answer

    # fmt: off
    return (
        method(_PREDICTION + "Predict", "inference", "PredictRequest", service.predict),
        method(_PREDICTION + "Classify", "inference", "ClassificationRequest", service.classify),
        method(_PREDICTION + "Regress", "inference", "RegressionRequest", service.regress),
        method(_PREDICTION + "MultiInference", "inference", "MultiInferenceRequest", service.multi_inference),
        method(_PREDICTION + "GetModelMetadata", "metadata", "GetModelMetadataRequest", now(metadata_of)),
        method(_MODELS + "GetModelStatus", "metadata", "GetModelStatusRequest", now(status_of)),
    )
    # fmt: on


class PredictionService:
    """Answers requests for inference. Not thread-safe: call from the event loop only.

    Each method raises the CoreError of a request that is refused or fails. A call that the client cancels
    cancels its requests.
    """

    def __init__(self, server: InferenceServer):
        self._server = server

    async def predict(self, request: messages.PredictRequest) -> messages.PredictResponse:
        signature, version = self._signature(request.model_spec)
        inputs = {name: tensor_of(name, proto) for name, proto in request.inputs.items()}
        replies = send(
            self._server.models.infer, signature, inputs, tuple(request.output_filter), version
        )
        outputs, answered = await received(replies)
        found = messages.PredictResponse(model_spec=spec_of(signature.name, answered))
        for name, tensor in outputs.items():
            found.outputs[name].CopyFrom(proto_of(tensor))
        return found

    async def classify(
        self, request: messages.ClassificationRequest
    ) -> messages.ClassificationResponse:
        signature, outputs, version = await self._of_examples(request.model_spec, request.input)
        return messages.ClassificationResponse(
            result=_classification(signature, outputs), model_spec=spec_of(signature.name, version)
        )

    async def regress(self, request: messages.RegressionRequest) -> messages.RegressionResponse:
        signature, outputs, version = await self._of_examples(request.model_spec, request.input)
        return messages.RegressionResponse(
            result=_regression(signature, outputs), model_spec=spec_of(signature.name, version)
        )

    async def multi_inference(
        self, request: messages.MultiInferenceRequest
    ) -> messages.MultiInferenceResponse:
        """Answer each task with the same examples. Raises CoreError if one of them fails."""
        found = messages.MultiInferenceResponse()
        for task in request.tasks:
            if task.method_name not in _METHODS:
                raise invalid(
                    f"the task has the method '{task.method_name}'; known are {', '.join(_METHODS)}"
                )
            signature, outputs, version = await self._of_examples(task.model_spec, request.input)
            result = found.results.add(model_spec=spec_of(signature.name, version))
            if _METHODS[task.method_name] == "classify":
                result.classification_result.CopyFrom(_classification(signature, outputs))
            else:
                result.regression_result.CopyFrom(_regression(signature, outputs))
        return found

    async def _of_examples(
        self, spec: messages.ModelSpec, given: messages.Input
    ) -> tuple[Signature, Mapping[str, Tensor], int]:
        signature, version = self._signature(spec)
        inputs = inputs_of(given, signature)
        replies = send(self._server.models.infer, signature, inputs, version=version)
        return signature, *(await received(replies))

    def _signature(self, spec: messages.ModelSpec) -> tuple[Signature, int]:
        model, version = chosen(self._server, spec)
        return checked_signature(self._server, model, version, spec.signature_name), version


def _classification(
    signature: Signature, outputs: Mapping[str, Tensor]
) -> messages.ClassificationResult:
    found = messages.ClassificationResult()
    for pairs in classes_of(signature, outputs):
        entry = found.classifications.add()
        for label, score in pairs:
            entry.classes.add(label=label, score=score)
    return found


def _regression(signature: Signature, outputs: Mapping[str, Tensor]) -> messages.RegressionResult:
    found = messages.RegressionResult()
    for value in values_of(signature, outputs):
        found.regressions.add(value=value)
    return found
