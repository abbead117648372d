"""Translate the calls of a model in this process into calls of the server, on its event loop."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from backend_python.api.errors import TritonError, TritonModelException
from backend_python.api.host import Key, may_call, no_inference, running_host, running_outer
from backend_python.api.request import InferenceRequest, MemoryType
from backend_python.api.response import InferenceResponse
from backend_python.api.sender import TRITONSERVER_RESPONSE_COMPLETE_FINAL
from backend_python.server import bls
from backend_python.server.calls import Calls, replied
from backend_python.server.control import OPERATIONS, ModelControl
from backend_python.server.errors import abandoned, code_of
from backend_python.server.process import write_log
from backend_python.server.tensors import core_tensor_of, model_tensor_there
from core import request as core_request
from core import response as core_response
from core.backlog import Pace
from core.batch import Batch
from core.errors import CoreError, Kind
from core.response import Reply

if TYPE_CHECKING:
    from backend_python.server.handover import Handover

Item = core_response.InferenceResponse | CoreError | None


class LocalHost:
    """The Host of a model in this process: it calls the server's objects directly. Thread-safe.

    server    the server whose models it may call; None if it runs without one
    control   handles its operations on other models; None if it runs without a server
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
        self.handover: Handover | None = None  # of the instance, once there is one
        self._has_senders = False  # the model has had a response sender
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
        """Return the requests that a call belongs to: the one of its trace, else those that are executed.

        Empty if they are unknown, as on a thread of a model that has response senders (see ChildHost).
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
        self._dropped.append((what, number))  # goes with the next call: destructors do not wait

    def close(self) -> None:
        """Close the calls of the instance, which is gone."""
        with self._calling:
            self._calls.close()


class LocalAnswers:
    """The responses to one call. They arrive on the event loop; one thread or coroutine takes them.

    on_gpu   True if tensors may stay on the GPU of the called model
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, *, on_gpu: bool = False):
        self._on_gpu = on_gpu
        self._loop = loop
        self._inbox = Inbox()
        self._over = False  # the last one has been taken

    def begin(
        self,
        server: Any,
        request: core_request.InferenceRequest,
        decoupled: bool,
        outer: Sequence[core_request.InferenceRequest],
    ) -> None:
        """Pass the request to the model that it names. Not thread-safe: call from the event loop only."""
        inbox = self._inbox  # not self: an unreferenced iterator must be freed
        if self._on_gpu:
            from backend_python.server import devices

            devices.keep_outputs(server, request)
        try:
            reply = bls.begin(server, request, decoupled, outer)
        except CoreError as error:
            inbox.arrive(error, True)
            return
        inbox.reply = reply
        reply.listen(inbox.arrive)

    def refuse(self, error: CoreError) -> None:
        """Answer the call with `error`, because its request is invalid."""
        self._inbox.arrive(error, True)

    def wait(self) -> InferenceResponse | None:
        inbox = self._inbox
        while not self._over:
            with inbox.turn:
                if not inbox.items and on(self._loop):
                    raise blocks("for", "; write `async for` instead")
                while not inbox.items:
                    inbox.turn.wait()
            if (response := self._take()) is not None:
                return response
        return None

    async def arrival(self) -> InferenceResponse | None:
        loop = asyncio.get_running_loop()
        inbox = self._inbox
        event = asyncio.Event()
        while not self._over:
            with inbox.turn:
                event.clear()
                inbox.arrived = lambda: loop.call_soon_threadsafe(event.set)
                if inbox.items:
                    event.set()
            await event.wait()
            if (response := self._take()) is not None:
                return response
        return None

    def cancel(self) -> None:
        if not self._over:
            self._loop.call_soon_threadsafe(self._inbox.cancel)

    def drop(self) -> None:
        if not self._over:
            self._over = True
            if not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._inbox.drop)

    def _take(self) -> InferenceResponse | None:
        item, self._over = self._inbox.items.popleft()
        return None if item is None else _response(item)

    def __del__(self) -> None:
        self.drop()


class Inbox:
    """The items that arrived for one call. `turn` guards items and arrived; the loop writes the others."""

    def __init__(self) -> None:
        self.turn = threading.Condition()
        self.items: deque[tuple[Item, bool]] = deque()
        self.arrived: Callable[[], object] | None = None  # wakes the coroutine that awaits an item
        self.reply: Reply | None = None  # None before it has begun, and if it was refused
        self.dropped = False

    def arrive(self, item: Item, final: bool) -> None:
        """Add an answer and wake the waiter. Call from the event loop, except for the error of a refusal."""
        with self.turn:
            if not self.dropped:
                self.items.append((item, final))
            self.turn.notify_all()
            arrived, self.arrived = self.arrived, None
        if arrived is not None:
            try:
                arrived()
            except RuntimeError:  # its loop has been closed
                pass

    def cancel(self) -> None:
        """Cancel the call. Not thread-safe: call from the event loop only."""
        if self.reply is not None:
            self.reply.cancel()

    def drop(self) -> None:
        """Cancel the call and discard its items. Not thread-safe: call from the event loop only."""
        self.dropped = True
        self.items.clear()
        self.cancel()


def on(loop: asyncio.AbstractEventLoop) -> bool:
    """Return whether this is the thread of `loop`, which must not wait for work on the same loop."""
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


def blocks(what: str, instead: str = "") -> TritonModelException:
    """Return the error for a call that would block the event loop."""
    return TritonModelException(
        f"'{what}' would block the server's event loop, on which this model runs "
        f"(EXECUTION_MODE inline){instead}, or choose EXECUTION_MODE thread or process."
    )


def _request(request: InferenceRequest) -> core_request.InferenceRequest:
    return bls.request_of(
        [core_tensor_of(tensor) for tensor in request.inputs()],
        model=request.model_name,
        version=request.model_version,
        request_id=request.request_id(),
        correlation_id=request.correlation_id(),
        flags=request.flags(),
        timeout_us=request.timeout(),
        parameters=json.loads(request.parameters()),
        outputs=sorted(request.requested_output_names()),
        trace=_trace(request.trace()._key),
    )


def _prefers_gpu(request: InferenceRequest) -> bool:
    preferred = request.preferred_memory
    return preferred is not None and preferred.memory_type == MemoryType.TRITONSERVER_MEMORY_GPU


def _trace(key: Key | None) -> Any:
    if key is None:
        return None
    batch, index = key
    return batch.requests[index].trace


def _response(item: core_response.InferenceResponse | CoreError) -> InferenceResponse:
    if isinstance(item, CoreError):
        return InferenceResponse(error=TritonError(item.message, code_of(item)))
    tensors = [model_tensor_there(tensor) for tensor in item.outputs]
    return InferenceResponse(tensors, parameters=item.parameters or None)


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
