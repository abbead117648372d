"""Translate the calls of a model in this process into calls of the server, on its event loop."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from backend_python.api.errors import TritonModelException
from backend_python.api.host import Key, may_call, no_inference, running_host, running_outer
from backend_python.api.request import InferenceRequest, MemoryType
from backend_python.api.response import InferenceResponse
from backend_python.api.sender import TRITONSERVER_RESPONSE_COMPLETE_FINAL
from backend_python.server import bls
from backend_python.server.calls import Calls, replied
from backend_python.server.control import OPERATIONS, ModelControl
from backend_python.server.errors import abandoned
from backend_python.server.local_answers import LocalAnswers, blocks, on
from backend_python.server.process import write_log
from backend_python.server.tensors import core_tensor_of
from core import request as core_request
from core.backlog import Pace
from core.batch import Batch
from core.errors import CoreError, Kind
from core.request import RequestedOutput

if TYPE_CHECKING:
    from backend_python.server.handover import Handover


class LocalHost:
    """The Host of a model in this process: it calls the server's objects directly. Thread-safe.

    server    the server whose models the model may call; None if the model runs without one
    control   handles the model's operations on other models; None if it runs without a server
    declared  names of the model's outputs and states, if core checks outputs; else None
    """

    def __init__(
        self,
        model_directory: str,
        decoupled: bool,
        server: Any,
        loop: asyncio.AbstractEventLoop,
        control: ModelControl | None,
        declared: frozenset[str] | None = None,
    ):
        self.model_directory = model_directory
        self.serving = False
        self.declared = declared
        self.handover: Handover | None = None  # of the instance, between its open and its stop
        self._has_senders = False  # True after the first response sender was made
        self._decoupled = decoupled
        self._server = server
        self._loop = loop
        self._control = control
        self._calls = Calls()
        self._dropped: deque[tuple[str, int]] = deque()
        self._calling = threading.Lock()

    def log(self, level: int, file: str, line: int, text: str) -> None:
        write_log(level, file, line, text)

    def send(
        self,
        key: Key,
        wanted: frozenset[str],
        response: InferenceResponse | None,
        flags: int,
        pace: Pace,
    ) -> None:
        batch, index = key
        final = bool(flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL) or not self._decoupled
        if response is None:
            batch.finish(index)
        else:
            answer(batch, index, response, wanted, self.declared, final)
            if not final:
                tensors = response.output_tensors()
                pace.gave(sum(t._size if t._array is None else t._array.nbytes for t in tensors))

    def pace(self, key: Key) -> Pace:
        batch, index = key
        self._has_senders = True
        return Pace(batch.requests[index], self._loop)

    def is_cancelled(self, key: Key) -> bool:
        batch, index = key
        cancelled: bool = batch.requests[index].cancelled
        return cancelled

    def abandon(self, key: Key) -> None:
        batch, index = key
        error = abandoned(batch.signature)
        # On the loop, after earlier answers: a destructor must not take the locks of a delivery.
        with contextlib.suppress(RuntimeError):  # the loop has ended, so no request waits
            self._loop.call_soon_threadsafe(partial(batch.fail, index, error, failure=True))

    def call(self, operation: str, arguments: dict[str, Any]) -> Any:
        if self._control is not None and operation in OPERATIONS:
            answer = self._controlled(self._control, operation, arguments)
        else:
            with self._calling:
                dropped = [self._dropped.popleft() for _ in range(len(self._dropped))]
                answer = replied(self._calls, (operation, arguments, dropped))
        if "error" in answer:
            raise TritonModelException(answer["error"])
        return answer["value"]

    def _controlled(
        self, control: ModelControl, operation: str, arguments: dict[str, Any]
    ) -> dict[str, Any]:
        if not on(self._loop):
            asked = asyncio.run_coroutine_threadsafe(
                control.answer(operation, arguments), self._loop
            )
            return asked.result()
        if operation != "is_model_ready":
            raise blocks(operation)
        try:
            return {"value": control.ready(**arguments)}
        except CoreError as error:
            return {"error": error.message}

    def infer(self, request: InferenceRequest, decoupled: bool, *, blocking: bool) -> LocalAnswers:
        if not may_call(self) or self._server is None:
            raise TritonModelException(no_inference(may_call(self)))
        if blocking and on(self._loop):
            raise blocks("exec", "; await async_exec instead")
        answers = LocalAnswers(self._loop, on_gpu=_prefers_gpu(request))
        try:
            asked = _request(request)
        except CoreError as error:
            answers.refuse(error)
            return answers
        outer = self._outer(request)
        if on(self._loop):
            answers.begin(self._server, asked, decoupled, outer)
        else:
            self._loop.call_soon_threadsafe(answers.begin, self._server, asked, decoupled, outer)
        return answers

    def _outer(self, request: InferenceRequest) -> Sequence[core_request.InferenceRequest]:
        """Return the requests that caused a call: the request of its trace, else the batch that runs now.

        Empty if no batch runs. Empty also on a thread that the model has started, once the model has made a
        response sender, because the batch is then unknown (see ChildHost).
        """
        key = request.trace()._key
        if key is not None:
            batch, index = key
            return [batch.requests[index]]
        outer = running_outer.get(None)
        if outer is not None:
            batch = outer.batch
        elif self.handover is None or (
            self._has_senders and running_host.get(None) is not self  # a thread of the model
        ):
            batch = None
        else:
            batch = self.handover.executing
        return batch.requests if batch is not None else ()

    def drop(self, what: str, number: int) -> None:
        self._dropped.append((what, number))  # the next call handles it: destructors must not wait

    def close(self) -> None:
        """Remove the metrics that the instance has made, because it is gone."""
        with self._calling:
            self._calls.close()


def _request(request: InferenceRequest) -> core_request.InferenceRequest:
    key = request.trace()._key
    return core_request.InferenceRequest(
        request.model_name,
        bls.by_name(map(core_tensor_of, request.inputs())),
        model_version=request.model_version,
        id=request.request_id(),
        outputs=tuple(map(RequestedOutput, sorted(request.requested_output_names()))),
        parameters=json.loads(request.parameters()),
        correlation_id=request.correlation_id(),
        flags=request.flags(),
        timeout_us=request.timeout(),
        trace=None if key is None else key[0].requests[key[1]].trace,
    )


def _prefers_gpu(request: InferenceRequest) -> bool:
    preferred = request.preferred_memory
    return preferred is not None and preferred.memory_type == MemoryType.TRITONSERVER_MEMORY_GPU


def answer(
    batch: Batch,
    i: int,
    response: InferenceResponse,
    wanted: frozenset[str],
    declared: frozenset[str] | None,
    final: bool,
) -> None:
    """Pass a model's response to the batch.

    declared   names of the model's outputs and states, if core checks outputs. Undeclared outputs are then
               passed on, so that core refuses them. None: undeclared outputs are dropped
    """
    error = response.error()
    if error is not None:
        batch.fail(i, CoreError(Kind(int(error.code())), error.message()), final=final)
        return
    tensors = [
        core_tensor_of(tensor)
        for tensor in response.output_tensors()
        if tensor.name() in wanted or (declared is not None and tensor.name() not in declared)
    ]
    parameters = json.loads(response.parameters()) or None
    batch.respond(i, tensors, parameters, final=final)
