"""The methods of PredictionService and ModelService."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from core.errors import invalid
from core.request import InferenceRequest
from core.response import Reply
from frontend_tfserving.classes import classes_of, values_of
from frontend_tfserving.prediction import Submit, received, send
from frontend_tfserving.rpc import messages
from frontend_tfserving.rpc.described import chosen, metadata_of, spec_of, status_of
from frontend_tfserving.rpc.examples import Examples
from frontend_tfserving.rpc.reading import away, read
from frontend_tfserving.rpc.reload import reload
from frontend_tfserving.rpc.tensors import made_bytes, proto_of, tensor_of
from frontend_tfserving.rpc.unpacked import read_tensors
from frontend_tfserving.signatures import checked_signature, sends_vectors
from frontends.grpc.call import GrpcCall
from frontends.grpc.extra_methods import unary
from frontends.grpc.interceptors import naming_caller
from frontends.grpc.method import Method, UnaryFunction, UnaryMethod
from frontends.grpc.services.metered import asking
from frontends.grpc.services.traced import bring_context
from frontends.http.background import LARGE_BYTES

if TYPE_CHECKING:
    from core.config import Signature
    from core.server import InferenceServer
    from core.tensor import Tensor

_PREDICTION = "/tensorflow.serving.PredictionService/"
_MODELS = "/tensorflow.serving.ModelService/"
Reader = Callable[[bytes, GrpcCall], Awaitable[Any]]
"""What returns the message in the bytes of a request, or raises CoreError."""

Service = Callable[[Any, int, GrpcCall], Awaitable[bytes]]
"""What answers a decoded request of so many bytes, with an encoded message."""

_MOST_TASKS = 100  # of MultiInference

_METHODS = {"tensorflow/serving/classify": "classify", "tensorflow/serving/regress": "regress"}


def methods(server: InferenceServer) -> tuple[Method, ...]:
    """Return the methods for the gRPC port of a server."""
    service = PredictionService(server)
    examples, many = messages.EncodedExamplesRequest, messages.EncodedMultiInferenceRequest
    of_class = partial(read, examples, known_as=messages.ClassificationRequest)
    of_value = partial(read, examples, known_as=messages.RegressionRequest)
    of_many = partial(read, many, known_as=messages.MultiInferenceRequest)

    def inference(path: str, reader: Reader, answer: Service) -> UnaryMethod:
        return UnaryMethod(path, "inference", _with_call(reader, answer), changes=True)

    def now(path: str, request: str, work: Callable[[InferenceServer, Any], Any]) -> UnaryMethod:
        async def answer(request: Any) -> Any:
            return work(server, request)

        return UnaryMethod(path, "metadata", unary(getattr(messages, request), answer))

    # fmt: off
    return (
        inference(_PREDICTION + "Predict", read_tensors, service.predict),
        inference(_PREDICTION + "Classify", of_class, service.classify),
        inference(_PREDICTION + "Regress", of_value, service.regress),
        inference(_PREDICTION + "MultiInference", of_many, service.multi_inference),
        now(_PREDICTION + "GetModelMetadata", "GetModelMetadataRequest", metadata_of),
        now(_MODELS + "GetModelStatus", "GetModelStatusRequest", status_of),
        _reload_method(server),
    )
    # fmt: on


def _reload_method(server: InferenceServer) -> UnaryMethod:
    async def answer(request: Any) -> Any:
        return await reload(server, request)

    return UnaryMethod(
        _MODELS + "HandleReloadConfigRequest",
        "model-repository",
        naming_caller(unary(messages.ReloadConfigRequest, answer)),
        operations=("repository.load", "repository.unload"),
    )


def _with_call(reader: Reader, service: Service) -> UnaryFunction:
    """Return the function of a method: `service` gets the decoded request, and the call."""

    async def answer(data: bytes, call: GrpcCall) -> bytes:
        return await service(await reader(data, call), len(data), call)

    return answer


class PredictionService:
    """Answers requests for inference. Not thread-safe: call from the event loop only.

    Each method raises the CoreError of a request that is refused or fails. A call that the client cancels
    cancels its requests.
    """

    def __init__(self, server: InferenceServer):
        self._server = server

    async def predict(
        self, request: messages.PackedPredictRequest, size: int, call: GrpcCall
    ) -> bytes:
        signature, version = self._signature(request.model_spec)
        made = await away(size, _made_bytes, request)
        if made > LARGE_BYTES:
            call.hold(made, "the tensors of the request")
        inputs = await away(max(size, made), _tensors, request)
        replies = send(self._submit(call), signature, inputs, tuple(request.output_filter), version)
        vectors = sends_vectors(signature, inputs)
        outputs, answered = await received(signature, replies, vectors)
        spec = spec_of(request.model_spec, answered)

        def message() -> messages.PackedPredictResponse:
            found = messages.PackedPredictResponse(model_spec=spec)
            for name, tensor in outputs.items():
                found.outputs[name].CopyFrom(proto_of(tensor))
            return found

        return await _encoded(outputs, message)

    async def classify(
        self, request: messages.EncodedExamplesRequest, size: int, call: GrpcCall
    ) -> bytes:
        signature, outputs, version = await self._of_examples(
            request.model_spec, Examples(request.input, size), call
        )
        spec = spec_of(request.model_spec, version)

        def message() -> messages.ClassificationResponse:
            return messages.ClassificationResponse(
                result=_classification(signature, outputs), model_spec=spec
            )

        return await _encoded(outputs, message)

    async def regress(
        self, request: messages.EncodedExamplesRequest, size: int, call: GrpcCall
    ) -> bytes:
        signature, outputs, version = await self._of_examples(
            request.model_spec, Examples(request.input, size), call
        )
        spec = spec_of(request.model_spec, version)

        def message() -> messages.RegressionResponse:
            return messages.RegressionResponse(
                result=_regression(signature, outputs), model_spec=spec
            )

        return await _encoded(outputs, message)

    async def multi_inference(
        self, request: messages.EncodedMultiInferenceRequest, size: int, call: GrpcCall
    ) -> bytes:
        """Answer each task with the same examples. Raises CoreError if one of them fails."""
        if len(request.tasks) > _MOST_TASKS:
            raise invalid(
                f"the request has {len(request.tasks)} tasks; at most {_MOST_TASKS} are accepted"
            )
        found = messages.MultiInferenceResponse()
        examples = Examples(request.input, size, len(request.tasks))
        for task in request.tasks:
            if task.method_name not in _METHODS:
                raise invalid(
                    f"the task has the method '{task.method_name}'; known are {', '.join(_METHODS)}"
                )
            signature, outputs, version = await self._of_examples(task.model_spec, examples, call)
            result = found.results.add(model_spec=spec_of(task.model_spec, version))
            if _METHODS[task.method_name] == "classify":
                made = await away(_byte_size(outputs), _classification, signature, outputs)
                result.classification_result.CopyFrom(made)
            else:
                made = await away(_byte_size(outputs), _regression, signature, outputs)
                result.regression_result.CopyFrom(made)
        encoded: bytes = found.SerializeToString()
        return encoded

    async def _of_examples(
        self, spec: messages.ModelSpec, examples: Examples, call: GrpcCall
    ) -> tuple[Signature, Mapping[str, Tensor], int]:
        signature, version = self._signature(spec)
        inputs = await examples.inputs_of(signature)
        replies = send(self._submit(call), signature, inputs, version=version)
        return signature, *(await received(signature, replies))

    def _submit(self, call: GrpcCall) -> Submit:
        """Return a function that hands a request of a call to its model, with deadline and limits."""
        models, ask = self._server.models, asking(self._server.models, call)

        def submit(request: InferenceRequest) -> Reply:
            request.deadline_ns = call.deadline_ns
            bring_context(self._server.tracing, call, request)
            return ask(models.endpoint(request.model_name, request.model_version), request, None)

        return submit

    def _signature(self, spec: messages.ModelSpec) -> tuple[Signature, int]:
        model, version = chosen(self._server, spec)
        return checked_signature(self._server, model, version, spec.signature_name)


def _made_bytes(request: messages.PackedPredictRequest) -> int:
    return sum(map(made_bytes, request.inputs.values()))


def _tensors(request: messages.PackedPredictRequest) -> dict[str, Tensor]:
    return {name: tensor_of(name, proto) for name, proto in request.inputs.items()}


def _byte_size(tensors: Mapping[str, Tensor]) -> int:
    return sum(tensor.byte_size for tensor in tensors.values())


async def _encoded(outputs: Mapping[str, Tensor], message: Callable[[], Any]) -> bytes:
    """Return the encoded message of outputs, made on another thread if these are large."""

    def encoded() -> bytes:
        found: bytes = message().SerializeToString()
        return found

    return await away(_byte_size(outputs), encoded)


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
