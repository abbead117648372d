"""Answers: convert a backend's answers to a batch into the responses of a Python model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from backend_python.api.errors import ErrorCode, TritonError
from backend_python.api.request import (
    TRITONSERVER_REQUEST_RELEASE_RESCHEDULE,
    InferenceRequest,
)
from backend_python.api.response import InferenceResponse
from backend_python.api.sender import TRITONSERVER_RESPONSE_COMPLETE_FINAL
from backend_python.api.tensor import Tensor as ModelTensor
from backend_python.api.tensor import shared
from core.config import Signature
from core.errors import CoreError, internal
from core.request import InferenceRequest as CoreRequest
from core.tensor import Tensor

# Error kinds and codes of the same meaning have the same number. Kind.UNKNOWN is INTERNAL.
_CODES = {code.value: code for code in ErrorCode if code is not ErrorCode.UNKNOWN}


class Answers:
    """Receives the answers of one batch in place of core's pipeline. Any thread, by the rules of core.batch.

    found   for each request its response; None if its sender answers it, if it is rescheduled, and before
            it is answered
    """

    def __init__(
        self,
        requests: Sequence[InferenceRequest],
        asked: Sequence[CoreRequest],
        signature: Signature,
    ):
        self.found: list[InferenceResponse | None] = [None] * len(requests)
        # True for requests that their senders answered, and for deferred and rescheduled ones.
        self._over = [False] * len(requests)
        self._requests = requests
        self._asked = asked
        self._signature = signature

    def take(self, outputs: Mapping[str, Any] | None) -> None:
        """Take the return value of execute: outputs with the rows of all requests, or None."""
        if outputs is None:
            return
        tensors = [self._tensor(name, array) for name, array in outputs.items()]
        if len(self._asked) == 1:
            self.found[0] = _response(tensors, None)
            return
        total = sum(request.rows for request in self._asked)
        for tensor in tensors:
            if not tensor.shape or tensor.shape[0] != total:
                raise internal(
                    f"output '{tensor.name}' has shape {list(tensor.shape)} for a batch of {total} rows; "
                    "expected that number as its first dimension"
                )
        begin = 0
        for i, request in enumerate(self._asked):
            end = begin + request.rows
            parts = [Tensor.of(each.name, each.array[begin:end], each.dtype) for each in tensors]
            self.found[i] = _response(parts, None)
            begin = end

    # Batch.delivery ---------------------------------------------------------------

    def respond(
        self,
        i: int,
        outputs: Mapping[str, Any] | list[Tensor],
        parameters: dict[str, Any] | None,
        final: bool,
    ) -> None:
        tensors = (
            outputs
            if isinstance(outputs, list)
            else [self._tensor(name, array) for name, array in outputs.items()]
        )
        if self._signature.decoupled:
            self._send(i, _response(tensors, parameters), final)
        else:
            self.found[i] = _response(tensors, parameters)

    def respond_all(self, answers: list[list[Tensor]]) -> None:
        for i, tensors in enumerate(answers):
            self.respond(i, tensors, None, True)

    def fail(self, i: int, error: CoreError, final: bool, failure: bool) -> None:
        code = _CODES.get(error.kind.value, ErrorCode.INTERNAL)
        response = InferenceResponse(error=TritonError(error.message, code))
        if self._signature.decoupled:
            self._send(i, response, final)
        else:
            self.found[i] = response

    def fail_rest(self, error: CoreError) -> None:
        """Fail every request that is not answered, deferred or rescheduled, because execute has raised."""
        for i, found in enumerate(self.found):
            if found is None and not self._over[i]:
                self.fail(i, error, True, True)

    def finish(self, i: int) -> None:
        self._over[i] = True
        self._sender(i).send(flags=TRITONSERVER_RESPONSE_COMPLETE_FINAL)

    def defer(self, i: int) -> None:
        self._over[i] = True  # its sender answers it later
        self._sender(i)

    def reschedule(self, i: int) -> None:
        self._over[i] = True
        self._requests[i].set_release_flags(TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)

    # --------------------------------------------------------------------------------

    def _sender(self, i: int) -> Any:
        return self._requests[i].get_response_sender()

    def _send(self, i: int, response: InferenceResponse, final: bool) -> None:
        self._over[i] = final
        flags = TRITONSERVER_RESPONSE_COMPLETE_FINAL if final else 0
        self._sender(i).send(response, flags)

    def _tensor(self, name: str, array: Any) -> Tensor:
        spec = self._signature.outputs.get(name) or self._signature.states.get(name)
        return Tensor.of(name, array, spec.dtype if spec is not None else None)


def _response(tensors: list[Tensor], parameters: dict[str, Any] | None) -> InferenceResponse:
    found: list[ModelTensor] = [
        shared(each.name, each.dtype.number, each.array) for each in tensors
    ]
    return InferenceResponse(found, parameters=parameters)
