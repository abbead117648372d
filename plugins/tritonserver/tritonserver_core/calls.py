"""A request that a program sends to the server in its process, and the inbox that its responses go to.

Model.infer ─► [Call] ─► loop thread ─► Reply ─► [Inbox] ─► iterator of the program
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from core.errors import CoreError
from core.request import DeviceOutput, InferenceRequest
from core.response import InferenceResponse
from frontends.in_process.loop_thread import CallQueue, running_loop_queue
from frontends.in_process.pending import SIGNAL_CHECK_S, Dispatcher
from frontends.in_process.streams import StreamRequest

if TYPE_CHECKING:
    from tritonserver import InferenceResponse as Response

Item = InferenceResponse | CoreError | None
"""What the server gives: a response, an error, or None at the end of a stream."""
Make = Callable[[Item, bool], "Response"]
"""Makes the program's response of an item and of whether it is the last."""


class Call(StreamRequest):
    """One request. `send` it from any thread; the loop thread then calls the other methods.

    on_device   whether the outputs may stay on a GPU
    """

    def __init__(
        self, dispatcher: Dispatcher, request: InferenceRequest, inbox: Inbox, on_device: bool
    ):
        super().__init__(dispatcher, request)
        self._inbox = inbox
        self._on_device = on_device
        self._begun = threading.Lock()
        self._begun.acquire()
        self._accepted = False
        self._refusal: CoreError | None = None

    def send(self) -> None:
        """Pass the request to the server; return when it is accepted. Raises the CoreError of a refusal."""
        thread = self._dispatcher.thread
        self._inbox.taken = self.taken
        if thread.is_current:
            self.begin()
        else:
            thread.add(self.begin)
            while not self._begun.acquire(timeout=SIGNAL_CHECK_S):
                pass
        if self._refusal is not None:
            raise self._refusal

    def begin(self) -> None:
        """Pass the request to the server, and wake the caller of `send`."""
        server, request = self._dispatcher.server, self.request
        try:
            if self._on_device and server is not None:
                with suppress(CoreError):  # an unknown model is refused below
                    found = server.models.signature(request.model_name, request.model_version)
                    request.outputs = tuple(DeviceOutput(name) for name in found.outputs)
            super().begin()
        finally:
            self._begun.release()

    def __call__(self, item: Item, final: bool) -> None:
        self._accepted = True
        super().__call__(item, final)

    def receive(self, item: Item, final: bool) -> None:
        """Put an item into the inbox. Without a reply before, it is the refusal of the request."""
        if not self._accepted and isinstance(item, CoreError):
            self._refusal = item
            self._done = True
            self._backlog.leave(self.request)
            return
        super().receive(item, final)

    def put(self, queued: tuple[Item, bool]) -> None:
        self._inbox.put(queued)

    def forget(self) -> None:
        """Drop further responses; the request goes on. Any thread."""
        with suppress(CoreError):  # the server has stopped
            self._dispatcher.thread.add(self._forget)

    def _forget(self) -> None:
        self._backlog.close()
        self._done = True


class Inbox:
    """The responses to one request until the program takes them.

    also    gets each response too, when it arrives
    taken   called with each item that the program has taken
    """

    def __init__(self, make: Make, also: Callable[[Any], None] | None):
        self._make = make
        self._also = also
        self.taken: Callable[[Item], None] = lambda item: None

    def put(self, queued: tuple[Item, bool]) -> None:
        """Add an item. Loop thread."""
        raise NotImplementedError

    def _made(self, queued: tuple[Item, bool]) -> Response:
        self.taken(queued[0])
        return self._make(*queued)


class ThreadInbox(Inbox):
    """An inbox that a thread reads."""

    def __init__(self, make: Make, also: Callable[[Any], None] | None):
        super().__init__(make, also)
        self._items: queue.SimpleQueue[tuple[Item, bool] | Response] = queue.SimpleQueue()

    def put(self, queued: tuple[Item, bool]) -> None:
        if self._also is None:
            self._items.put(queued)
        else:
            response = self._made(queued)
            self._items.put(response)
            self._also(response)

    def get(self) -> Response:
        """Return the next response; wait for it. Ctrl-C ends the wait."""
        while True:
            try:
                found = self._items.get(timeout=SIGNAL_CHECK_S)
            except queue.Empty:
                continue
            return self._made(found) if isinstance(found, tuple) else found


class AsyncInbox(Inbox):
    """An inbox that a coroutine reads, on any event loop.

    With `also`, create it on the loop of the queue that `also` puts into.
    """

    def __init__(self, make: Make, also: Callable[[Any], None] | None):
        super().__init__(make, also)
        self._items: deque[tuple[Item, bool] | Response] = deque()
        self._waiting: tuple[CallQueue, asyncio.Future[None]] | None = None
        self._calls = None if also is None else running_loop_queue()

    def put(self, queued: tuple[Item, bool]) -> None:
        if self._also is None or self._calls is None:
            self._items.append(queued)
        else:
            response, also = self._made(queued), self._also
            self._items.append(response)
            with suppress(CoreError):  # the program's loop is closed
                self._calls.add(lambda: also(response))
        if (waiting := self._waiting) is not None:
            calls, future = waiting
            with suppress(CoreError):
                calls.add(lambda: _wake(future))

    async def get(self) -> Response:
        """Return the next response. Use it from one coroutine at a time."""
        while not self._items:
            future = asyncio.get_running_loop().create_future()
            self._waiting = (running_loop_queue(), future)
            try:
                if not self._items:  # the loop thread appends an item before it looks for who waits
                    await future
            finally:
                self._waiting = None
        found = self._items.popleft()
        return self._made(found) if isinstance(found, tuple) else found


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
