"""A batch as a model in this process sees it, and the model's responses as answers; no bytes are copied."""

from __future__ import annotations

import json
from typing import Any

from backend_python.api.request import (
    TRITONSERVER_REQUEST_RELEASE_RESCHEDULE,
    InferenceRequest,
)
from backend_python.api.tensor import Tensor
from backend_python.server.local import LocalHost, answer
from backend_python.server.tensors import core_tensor_of, model_tensor_there
from core.batch import Batch
from core.request import InferenceRequest as CoreRequest


class Handover:
    """For the batches of one instance. Holds nothing of them.

    host        of the model's calls
    outputs     of the model, and `states`, which clients do not name
    decoupled   whether its requests may have several answers
    on_gpu      whether the model takes inputs on a GPU as they are
    """

    def __init__(
        self,
        host: LocalHost,
        outputs: list[str],
        states: list[str],
        decoupled: bool,
        on_gpu: bool = False,
    ):
        self._on_gpu = on_gpu
        self._host = host
        self._states = states
        self._outputs = frozenset(outputs + states)
        self._decoupled = decoupled

    def requests(self, batch: Batch) -> list[InferenceRequest]:
        """What the model's execute gets."""
        if self._on_gpu:
            inputs = [
                [model_tensor_there(tensor) for tensor in request.inputs.values()]
                for request in batch.requests
            ]
        else:
            inputs = [Tensor._all_shared(arrays) for arrays in batch.arrays()]
        found = InferenceRequest._all_plain(
            self._host, batch, inputs, self._outputs, self._decoupled
        )
        for i, request in enumerate(batch.requests):
            if not request.is_bare():
                self._tell(found[i], request)
        return found

    def _tell(self, theirs: InferenceRequest, request: CoreRequest) -> None:
        """What a request has beside its tensors."""
        theirs._request_id = request.id
        theirs._correlation_id = request.correlation_id
        theirs._flags = request.flags
        theirs._timeout = request.timeout_us
        if request.outputs:
            theirs._outputs = frozenset([o.name for o in request.outputs] + self._states)
        if request.trace is not None:
            theirs._trace = request.trace.carrier()
        if request.has_parameters:
            theirs._parameters = json.dumps(request.parameters)

    def answer(self, batch: Batch, requests: list[InferenceRequest], responses: list[Any]) -> None:
        """Hand on what execute returned: a response, or None, for each request."""
        batch.outputs_ready()
        answers = []
        for request, response in zip(requests, responses, strict=True):
            if (
                response is None
                or response._error is not None
                or response._parameters
                or request._sender is not None
            ):
                self._answer_each(batch, requests, responses)
                return
            wanted = request._outputs
            answers.append([core_tensor_of(t) for t in response._outputs if t._name in wanted])
        batch.respond_all(answers)

    def _answer_each(
        self, batch: Batch, requests: list[InferenceRequest], responses: list[Any]
    ) -> None:
        for i, (request, response) in enumerate(zip(requests, responses, strict=True)):
            if response is not None:
                answer(batch, i, response, request._outputs, True)
            elif request._release_flags == TRITONSERVER_REQUEST_RELEASE_RESCHEDULE:
                batch.reschedule(i)
            elif request._sender is not None:
                batch.defer(i)
