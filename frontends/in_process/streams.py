"""All responses to one request, as an iterator: for threads, and for coroutines.

Reply ─► loop thread ─► [ResponseStream, AsyncResponseStream] ─► for response in …

A Backlog (core/backlog.py) counts the responses that wait here, so that a model waits for a slow reader.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import queue
import time
import weakref
from collections import deque
from functools import partial

from core.backlog import Backlog
from core.errors import CoreError
from core.request import InferenceRequest
from core.response import InferenceResponse
from frontends.in_process.loop_thread import CallQueue, running_loop_queue, would_deadlock
from frontends.in_process.pending import (
    SIGNAL_CHECK_S,
    Dispatcher,
    Item,
    PendingRequest,
    copy_of,
    timed_out,
)
from frontends.in_process.values import Response

# A reader reports the responses that it has taken after so many responses or bytes: far below half of a
# backlog.
REPORT_RESPONSES = 64
REPORT_BYTES = 2**20

_QueuedItem = tuple[Item, bool]
"""An item, and whether it is the last one."""


class StreamRequest(PendingRequest):
    """A request with any number of responses. Loop thread only, except `taken` and `close`."""

    def __init__(self, dispatcher: Dispatcher, request: InferenceRequest):
        super().__init__(dispatcher, request)
        fail = weakref.WeakMethod(self.fail)  # weak: the request holds the backlog
        self._backlog = Backlog(lambda error: (call := fail()) and call(error))
        self._done = False  # the last item is queued, or the reader has closed the stream
        # Written by the reader: sizes of responses that it has taken and not reported yet.
        self._sizes: list[int] = []
        self._bytes = 0

    def begin(self) -> None:
        self._backlog.enter(self.request)
        super().begin()

    def receive(self, item: Item, final: bool) -> None:
        if self._done:
            return
        if final:
            self._done = True
            self._backlog.leave(self.request)
        if item is not None:
            self._backlog.add(size_of(item))
        if self._done and not final:  # the line above called `fail`
            return
        self.put((item, final))

    def put(self, queued: _QueuedItem) -> None:
        raise NotImplementedError

    def fail(self, error: CoreError) -> None:
        """Cancel the request because its reader is too slow. The reader gets `error` as the last item."""
        self._done = True
        self._backlog.close()
        self.request.cancel()
        self.put((error, True))

    def taken(self, item: Item) -> None:
        """Count an item that the reader has taken. Report counted items to the backlog, many together.

        Called on the reader's thread.
        """
        size = size_of(item)
        self._sizes.append(size)
        self._bytes += size
        # `full` is read without a lock: the reader sees a change at the next response at the latest.
        if (
            len(self._sizes) >= REPORT_RESPONSES
            or self._bytes >= REPORT_BYTES
            or self._backlog.full
        ):
            sizes, self._sizes, self._bytes = self._sizes, [], 0
            with contextlib.suppress(CoreError):
                self._dispatcher.thread.add(partial(_remove, self._backlog, sizes))

    def close(self) -> None:
        """Drop further items; cancel the request if it has not ended. Any thread."""
        with contextlib.suppress(CoreError):
            self._dispatcher.thread.add(self._close)

    def _close(self) -> None:
        self._backlog.close()
        if not self._done:
            self._done = True
            self.request.cancel()


def _remove(backlog: Backlog, sizes: list[int]) -> None:
    """Remove taken responses of these sizes in bytes from a backlog. Loop thread."""
    for size in sizes:
        backlog.take(size)


def size_of(item: Item) -> int:
    """Return the number of bytes in the tensors of a response, 0 for an error."""
    if not isinstance(item, InferenceResponse):
        return 0
    return sum(tensor.byte_size for tensor in item.outputs)


class _ThreadStreamRequest(StreamRequest):
    def __init__(self, dispatcher: Dispatcher, request: InferenceRequest):
        super().__init__(dispatcher, request)
        self.items: queue.SimpleQueue[_QueuedItem] = queue.SimpleQueue()

    def put(self, queued: _QueuedItem) -> None:
        self.items.put(queued)


class _AsyncStreamRequest(StreamRequest):
    def __init__(self, dispatcher: Dispatcher, request: InferenceRequest, calls: CallQueue | None):
        super().__init__(dispatcher, request)
        self._calls = calls  # of the reader's loop, None if that is the server's
        self.items: deque[_QueuedItem] = deque()
        self.arrived = asyncio.Event()

    def put(self, queued: _QueuedItem) -> None:
        self.items.append(queued)
        if self._calls is None:
            self.arrived.set()
        else:
            with contextlib.suppress(CoreError):  # the reader's loop is closed
                self._calls.add(self.arrived.set)


class _Reader:
    """The base of both streams. Deleting the last reference to a stream closes it."""

    _stream: StreamRequest

    def __init__(self, request: InferenceRequest, timeout_s: float | None):
        self._request = request
        self._timeout_s = timeout_s
        self._end_s = math.inf if timeout_s is None else time.monotonic() + timeout_s
        self._ended = False

    @property
    def _left_s(self) -> float:
        """Return the seconds until the timeout, 0.0 after it; infinity without a timeout."""
        return max(0.0, self._end_s - time.monotonic())

    def _close(self) -> None:
        if not self._ended:
            self._ended = True
            self._stream.close()

    def __del__(self) -> None:
        # The constructor may have raised; at interpreter exit, modules may be gone.
        with contextlib.suppress(AttributeError, TypeError):
            self._close()

    def _timed_out(self) -> CoreError:
        self._close()
        return timed_out(self._request, self._timeout_s)

    def _response(self, queued: _QueuedItem) -> Response | None:
        """Return the response in an item, which counts as taken; None if the item only ends the stream.

        Raises the item's error.
        """
        item, self._ended = queued
        if item is None:
            return None
        self._stream.taken(item)
        if isinstance(item, CoreError):
            raise copy_of(item)
        return Response(item)


class ResponseStream(_Reader):
    """The responses to one request: `for response in stream`. Use it on one thread at a time.

    `next` raises an error that is among the responses; more responses may follow it. Leaving the `with`
    block, `close`, and deleting the stream cancel the request if it has not ended.
    """

    _stream: _ThreadStreamRequest

    def __init__(self, dispatcher: Dispatcher, request: InferenceRequest, timeout_s: float | None):
        super().__init__(request, timeout_s)
        if dispatcher.thread.is_current:
            raise would_deadlock("stream")
        self._stream = _ThreadStreamRequest(dispatcher, request)
        dispatcher.thread.add(self._stream.begin)

    def __iter__(self) -> ResponseStream:
        return self

    def __next__(self) -> Response:
        while not self._ended:
            left_s = self._left_s
            try:
                queued = self._stream.items.get(timeout=min(SIGNAL_CHECK_S, left_s))
            except queue.Empty:
                if left_s > SIGNAL_CHECK_S:
                    continue
                raise self._timed_out() from None
            except BaseException:  # KeyboardInterrupt
                self._close()
                raise
            if (response := self._response(queued)) is not None:
                return response
        raise StopIteration

    def close(self) -> None:
        """Stop reading. A second call does nothing."""
        self._close()

    def __enter__(self) -> ResponseStream:
        return self

    def __exit__(self, *error: object) -> None:
        self._close()


class AsyncResponseStream(_Reader):
    """The responses to one request: `async for response in stream`, on the loop that created it.

    Errors and the end of the stream are those of ResponseStream.
    """

    _stream: _AsyncStreamRequest

    def __init__(self, dispatcher: Dispatcher, request: InferenceRequest, timeout_s: float | None):
        super().__init__(request, timeout_s)
        if asyncio.get_running_loop() is dispatcher.thread.loop:
            self._stream = _AsyncStreamRequest(dispatcher, request, None)
            self._stream.begin()
        else:
            self._stream = _AsyncStreamRequest(dispatcher, request, running_loop_queue())
            dispatcher.thread.add(self._stream.begin)

    def __aiter__(self) -> AsyncResponseStream:
        return self

    async def __anext__(self) -> Response:
        stream = self._stream
        while not self._ended:
            if not stream.items:
                stream.arrived.clear()
                if not stream.items:  # the loop thread appends an item before it sets the event
                    await self._arrival()
                continue
            if (response := self._response(stream.items.popleft())) is not None:
                return response
        raise StopAsyncIteration

    async def _arrival(self) -> None:
        left_s = None if self._end_s == math.inf else self._left_s
        try:
            await asyncio.wait_for(self._stream.arrived.wait(), left_s)
        except asyncio.TimeoutError:
            raise self._timed_out() from None
        except asyncio.CancelledError:
            self._close()
            raise

    async def aclose(self) -> None:
        self._close()

    async def __aenter__(self) -> AsyncResponseStream:
        return self

    async def __aexit__(self, *error: object) -> None:
        self._close()
