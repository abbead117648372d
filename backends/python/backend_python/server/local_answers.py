"""The responses to the calls of a model in this process."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from backend_python.api.errors import TritonError, TritonModelException
from backend_python.api.response import InferenceResponse
from backend_python.server import bls
from backend_python.server.errors import code_of
from backend_python.server.tensors import model_tensor_there
from core import request as core_request
from core import response as core_response
from core.errors import CoreError
from core.response import Reply

Item = core_response.InferenceResponse | CoreError | None


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
    """The items that have arrived for one call and were not taken yet.

    `turn` guards `items` and `arrived`. Only the thread of the event loop writes `reply` and `dropped`.
    """

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
    """Return the error for the call `what`, which would block the event loop.

    instead   advice, such as another call; "" for none
    """
    return TritonModelException(
        f"'{what}' would block the server's event loop, on which this model runs "
        f"(EXECUTION_MODE inline){instead}, or choose EXECUTION_MODE thread or process."
    )


def _response(item: core_response.InferenceResponse | CoreError) -> InferenceResponse:
    if isinstance(item, CoreError):
        return InferenceResponse(error=TritonError(item.message, code_of(item)))
    tensors = [model_tensor_there(tensor) for tensor in item.outputs]
    return InferenceResponse(tensors, parameters=item.parameters or None)
