"""Convert a batch for a model in this process, and the model's responses to answers, without copies."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import CoroutineType
from typing import Any

from backend_python.api.datatypes import BYTES
from backend_python.api.host import running_host
from backend_python.api.request import (
    TRITONSERVER_REQUEST_RELEASE_RESCHEDULE,
    InferenceRequest,
    all_received,
    received,
)
from backend_python.api.tensor import Tensor, all_shared
from backend_python.returned import checked
from backend_python.server.local import LocalHost, answer
from backend_python.server.tensors import core_tensor_of, model_tensor_there
from core.batch import Batch
from core.request import InferenceRequest as CoreRequest


class Handover:
    """The converter of one instance's batches.

    executing   the batch whose execute was called and has not returned; None if there is none
    host        handles the model's calls to the server
    outputs     names of the model's outputs
    states      names of its states, which each request gets, also if its client requests only some outputs
    decoupled   True if a request may have several answers
    on_gpu      True if the model takes inputs on a GPU without a copy
    checks      True if core checks outputs: undeclared outputs are then passed on, so that core refuses them;
                else they are dropped
    """

    def __init__(
        self,
        host: LocalHost,
        outputs: list[str],
        states: list[str],
        decoupled: bool,
        on_gpu: bool = False,
        checks: bool = False,
    ):
        self._on_gpu = on_gpu
        self._host = host
        self._states = states
        self._outputs = frozenset(outputs + states)
        self._declared = self._outputs if checks else None
        self._decoupled = decoupled
        self.executing: Batch | None = None

    def requests(self, batch: Batch) -> list[InferenceRequest]:
        """Return the requests of a batch as the model's execute takes them."""
        found = self._plain(batch, batch.arrays()) if not self._on_gpu else self._there(batch)
        indices = batch.indices_with_details()
        if indices:
            self._add_details(found, batch.requests, indices)
        return found

    def _plain(self, batch: Batch, inputs: list[Any]) -> list[InferenceRequest]:
        requests = []
        for i in range(len(inputs)):
            tensors = all_shared(inputs[i])
            requests.append(received(self._host, batch, i, tensors, self._outputs, self._decoupled))
        return requests

    def _there(self, batch: Batch) -> list[InferenceRequest]:
        """Return what `_plain` returns, but leave inputs on a GPU that are there."""
        inputs = [list(map(model_tensor_there, each.inputs.values())) for each in batch.requests]
        return all_received(self._host, batch, inputs, self._outputs, self._decoupled)

    def _add_details(
        self, found: list[InferenceRequest], requests: list[CoreRequest], indices: list[int]
    ) -> None:
        """Set the fields, other than tensors, of the requests at `indices`."""
        for i in indices:
            theirs, request = found[i], requests[i]
            theirs._request_id = request.id
            theirs._correlation_id = request.correlation_id
            theirs._flags = request.flags
            theirs._timeout = request.timeout_us
            if request.outputs:
                theirs._outputs = frozenset([o.name for o in request.outputs] + self._states)
                if theirs._sender is not None:
                    theirs._sender.wanted = theirs._outputs
            if request.trace is not None:
                theirs._trace = request.trace.carrier()
            if request.has_parameters:
                theirs._parameters = json.dumps(request.parameters)

    def run(
        self,
        batch: Batch,
        execute: Callable[[list[InferenceRequest]], Any],
        failed: Callable[[Batch, BaseException], None],
    ) -> tuple[list[InferenceRequest], Any] | None:
        """Let the model execute a batch, and answer it.

        If execute returns a coroutine, return the requests and the coroutine: the caller must await it and
        answer the batch. Else return None.

        execute   calls the model's execute
        failed    called instead of an answer, if execute raises or its return value is invalid
        """
        requests = self.requests(batch)
        token = running_host.set(self._host)
        self.executing = batch
        try:
            returned = execute(requests)
            if isinstance(returned, CoroutineType):
                return requests, returned
            responses = checked(requests, returned, self._decoupled)
        except BaseException as error:  # SystemExit too: it is the batch that failed
            failed(batch, error)
            return None
        finally:
            self.executing = None
            running_host.reset(token)
        self.answer(batch, requests, responses)
        return None

    def answer(self, batch: Batch, requests: list[InferenceRequest], responses: list[Any]) -> None:
        """Answer a batch with the return value of execute: a response or None for each request."""
        batch.outputs_ready()
        answers = []
        for i in range(len(requests)):
            request, response = requests[i], responses[i]
            if (
                response is None
                or response._error is not None
                or response._parameters
                or request._sender is not None
            ):
                self._answer_each(batch, requests, responses)
                return
            answers.append(_outputs(response._outputs, request._outputs, self._declared))
        batch.respond_all(answers)

    def _answer_each(
        self, batch: Batch, requests: list[InferenceRequest], responses: list[Any]
    ) -> None:
        for i, (request, response) in enumerate(zip(requests, responses, strict=True)):
            if response is not None:
                answer(batch, i, response, request._outputs, self._declared, True)
            elif request._release_flags == TRITONSERVER_REQUEST_RELEASE_RESCHEDULE:
                batch.reschedule(i)
            elif request._sender is not None:
                batch.defer(i)


def _outputs(
    tensors: list[Tensor], wanted: frozenset[str], declared: frozenset[str] | None
) -> list[Any]:
    """Return the wanted outputs, and with `declared` undeclared ones, in the form of Batch.respond_all."""
    found: list[Any] = []
    keeps_all = wanted is declared  # an output is among the wanted ones, or undeclared
    for tensor in tensors:
        if (
            keeps_all
            or tensor._name in wanted
            or (declared is not None and tensor._name not in declared)
        ):
            if tensor._array is None or tensor._number == BYTES:
                found.append(core_tensor_of(tensor))
            else:
                found.append((tensor._name, tensor._number, tensor._array))
    return found
