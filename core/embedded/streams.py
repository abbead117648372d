"""All answers to one request, as an iterator: for threads, and for coroutines.

Reply ─► loop thread ─► [Stream, AsyncStream] ─► for response in …  What waits here is counted in a
Backlog, so that a model waits for a reader that is slower than it (core/backlog.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import queue
import time
import weakref
from collections import deque
from types import TracebackType

from core.backlog import Backlog
from core.embedded.asking import LOOK_S, Asked, Desk, Item, fresh, late
from core.embedded.mailbox import Mailbox, mailbox_here, waits_for_itself
from core.embedded.values import Response
from core.errors import CoreError
from core.request import InferenceRequest
from core.response import InferenceResponse

# A reader tells what it has taken with each so many answers or bytes, far below the half of a backlog.
TELL_ANSWERS = 64
TELL_BYTES = 2**20

_Arrived = tuple[Item, bool]


class _Channel(Asked):
    """The loop's end of a stream. Loop thread, but for what says otherwise."""

    def __init__(self, desk: Desk, request: InferenceRequest):
        super().__init__(desk, request)
        self._backlog = Backlog(_GivingUp(self))
        self._over = False  # nobody reads any more, or the last item has been put
        # Written by the reader: sizes of the answers that it has taken and not told.
        self._taken: list[int] = []
        self._taken_bytes = 0

    def begin(self) -> None:
        self._backlog.enter(self.request)
        super().begin()

    def take(self, item: Item, final: bool) -> None:
        if self._over:
            return
        if final:
            self._over = True
            self._backlog.leave(self.request)
        if item is not None:
            self._backlog.add(size_of(item))
        if self._over and not final:  # given up in the line above
            return
        self.put((item, final))

    def put(self, arrived: _Arrived) -> None:
        """Give one item to the reader."""
        raise NotImplementedError

    def give_up(self, error: CoreError) -> None:
        """The reader does not read: the error is the last that it gets."""
        self._over = True
        self._backlog.close()
        self.request.cancel()
        self.put((error, True))

    def took(self, item: Item) -> None:
        """The reader has taken an answer. The reader's thread."""
        size = size_of(item)
        self._taken.append(size)
        self._taken_bytes += size
        # `full` is read without a lock: an answer later it is seen.
        if (
            len(self._taken) >= TELL_ANSWERS
            or self._taken_bytes >= TELL_BYTES
            or self._backlog.full
        ):
            told, self._taken, self._taken_bytes = self._taken, [], 0
            with contextlib.suppress(CoreError):
                self._desk.thread.post(_Taken(self._backlog, told))

    def close(self) -> None:
        """Nobody reads any more; a request that is not over is cancelled. Any thread."""
        with contextlib.suppress(CoreError):
            self._desk.thread.post(self._close)

    def _close(self) -> None:
        self._backlog.close()
        if not self._over:
            self._over = True
            self.request.cancel()


class _GivingUp:
    """Tells a channel. It does not hold it, since the channel holds the backlog, and both a request."""

    def __init__(self, channel: _Channel):
        self._channel = weakref.ref(channel)

    def __call__(self, error: CoreError) -> None:
        if (channel := self._channel()) is not None:
            channel.give_up(error)


class _Taken:
    """Tells a backlog, on the loop thread, what has left it."""

    def __init__(self, backlog: Backlog, sizes: list[int]):
        self._backlog = backlog
        self._sizes = sizes

    def __call__(self) -> None:
        for size in self._sizes:
            self._backlog.take(size)


def size_of(item: Item) -> int:
    """Bytes of an answer's tensors."""
    if not isinstance(item, InferenceResponse):
        return 0
    return sum(tensor.byte_size for tensor in item.outputs)


class _ThreadChannel(_Channel):
    def __init__(self, desk: Desk, request: InferenceRequest):
        super().__init__(desk, request)
        self.items: queue.SimpleQueue[_Arrived] = queue.SimpleQueue()

    def put(self, arrived: _Arrived) -> None:
        self.items.put(arrived)


class _TaskChannel(_Channel):
    def __init__(self, desk: Desk, request: InferenceRequest, mailbox: Mailbox | None):
        super().__init__(desk, request)
        self._mailbox = mailbox  # of the reader's loop, None if that is the server's
        self.items: deque[_Arrived] = deque()
        self.arrived = asyncio.Event()

    def put(self, arrived: _Arrived) -> None:
        self.items.append(arrived)
        if self._mailbox is None:
            self.arrived.set()
        else:
            with contextlib.suppress(CoreError):  # that loop is closed: nobody reads
                self._mailbox.post(self.arrived.set)


class _Reader:
    """What the streams of both kinds do alike. A reader that is dropped closes its stream."""

    _channel: _Channel

    def __init__(self, request: InferenceRequest, timeout_s: float | None):
        self._request = request
        self._timeout_s = timeout_s
        self._end_s = math.inf if timeout_s is None else time.monotonic() + timeout_s
        self._ended = False

    @property
    def _left_s(self) -> float:
        """Seconds until the deadline, infinity without one."""
        return max(0.0, self._end_s - time.monotonic())

    def _close(self) -> None:
        if not self._ended:
            self._ended = True
            self._channel.close()

    def __del__(self) -> None:
        # Not made whole, or the interpreter ends and modules are gone.
        with contextlib.suppress(AttributeError, TypeError):
            self._close()

    def _late(self) -> CoreError:
        self._close()
        return late(self._request, self._timeout_s)

    def _opened(self, arrived: _Arrived) -> Response | None:
        """The response in an item; raises its error. None at the end."""
        item, self._ended = arrived
        if item is None:
            return None
        self._channel.took(item)
        if isinstance(item, CoreError):
            raise fresh(item)
        return Response(item)


class Stream(_Reader):
    """The answers to one request, for a thread: `for response in stream`. One thread at a time.

    A CoreError that `next` raises is one answer; when the model goes on after it, so may `next`. To
    leave the `with` block, to call `close` or to drop the stream cancels the request if it is not over.
    """

    _channel: _ThreadChannel

    def __init__(self, desk: Desk, request: InferenceRequest, timeout_s: float | None):
        super().__init__(request, timeout_s)
        if desk.thread.is_here:
            raise waits_for_itself("stream")
        self._channel = _ThreadChannel(desk, request)
        desk.thread.post(self._channel.begin)

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> Response:
        while not self._ended:
            left_s = self._left_s
            try:
                arrived = self._channel.items.get(timeout=min(LOOK_S, left_s))
            except queue.Empty:
                if left_s > LOOK_S:
                    continue
                raise self._late() from None
            except BaseException:  # KeyboardInterrupt
                self._close()
                raise
            if (response := self._opened(arrived)) is not None:
                return response
        raise StopIteration

    def close(self) -> None:
        """Read no more. A second call does nothing."""
        self._close()

    def __enter__(self) -> Stream:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._close()


class AsyncStream(_Reader):
    """The same for a coroutine: `async for response in stream`. On the loop that made it."""

    _channel: _TaskChannel

    def __init__(self, desk: Desk, request: InferenceRequest, timeout_s: float | None):
        super().__init__(request, timeout_s)
        if asyncio.get_running_loop() is desk.thread.loop:
            self._channel = _TaskChannel(desk, request, None)
            self._channel.begin()
        else:
            self._channel = _TaskChannel(desk, request, mailbox_here())
            desk.thread.post(self._channel.begin)

    def __aiter__(self) -> AsyncStream:
        return self

    async def __anext__(self) -> Response:
        channel = self._channel
        while not self._ended:
            if not channel.items:
                channel.arrived.clear()
                if not channel.items:  # the other thread puts first and tells then
                    await self._arrival()
                continue
            if (response := self._opened(channel.items.popleft())) is not None:
                return response
        raise StopAsyncIteration

    async def _arrival(self) -> None:
        left_s = None if self._end_s == math.inf else self._left_s
        try:
            await asyncio.wait_for(self._channel.arrived.wait(), left_s)
        except asyncio.TimeoutError:
            raise self._late() from None
        except asyncio.CancelledError:
            self._close()
            raise

    async def aclose(self) -> None:
        """Read no more. A second call does nothing."""
        self._close()

    async def __aenter__(self) -> AsyncStream:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._close()
