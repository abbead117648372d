"""One request between the program and the server.

Server.infer ─► [PendingRequest] ─► LoopThread ─► Models.infer ─► Reply ─► [PendingRequest] ─► result

The server needs no task and no coroutine for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from contextvars import ContextVar
from numbers import Real
from typing import TYPE_CHECKING

from core.errors import CoreError, Kind, internal
from core.request import InferenceRequest
from core.response import InferenceResponse, not_single
from frontends.in_process.loop_thread import (
    CallQueue,
    LoopThread,
    running_loop_queue,
    would_deadlock,
)
from frontends.in_process.values import Response, Timeout

if TYPE_CHECKING:
    from core.server import InferenceServer

logger = logging.getLogger("core")

MAX_TIMEOUT_S = 1e9  # about thirty years; the clocks hold no more
SIGNAL_CHECK_S = 0.5  # a waiting thread sees a signal after this time at the latest

Item = InferenceResponse | CoreError | None
"""An item of a reply: a response, an error, or None at the end."""


class Dispatcher:
    """Passes requests of this program to the server. Loop thread only, except `thread`."""

    def __init__(self, thread: LoopThread) -> None:
        self.thread = thread  # of the server's loop; any thread
        self.server: InferenceServer | None = None  # takes the requests; None before the start
        self.closed = "the server is not started"  # why new requests are refused; "" if accepted
        self.pending: set[PendingRequest] = set()  # have not received their last item

    def open(self, server: InferenceServer) -> None:
        self.server, self.closed = server, ""

    def close(self, reason: str) -> None:
        self.closed = reason

    def fail_pending(self, reason: str) -> None:
        """End every pending request with CoreError(UNAVAILABLE)."""
        for pending in list(self.pending):
            pending(CoreError(Kind.UNAVAILABLE, reason), True)


current_dispatcher: ContextVar[Dispatcher | None] = ContextVar("current_dispatcher", default=None)
"""The dispatcher of the server that runs the current bound function.

A server that stops still accepts requests of its own functions: they belong to accepted requests.
"""


class PendingRequest:
    """One request, and the listener of its reply. Create it in the context (contextvars) of the caller.

    request   to the server, which changes it on the loop thread after `begin`
    """

    def __init__(self, dispatcher: Dispatcher, request: InferenceRequest):
        self.request = request
        self._dispatcher = dispatcher
        self._from_function = current_dispatcher.get() is dispatcher

    def begin(self) -> None:
        """Pass the request to the server. An error goes to `receive`, and is not raised. Loop thread."""
        dispatcher, request = self._dispatcher, self.request
        try:
            if dispatcher.server is None or (dispatcher.closed and not self._from_function):
                raise CoreError(Kind.UNAVAILABLE, dispatcher.closed)
            if request.trace is not None:  # the traceparent of the caller
                tracing = dispatcher.server.tracing
                request.trace = tracing.context(request.trace, ()) if tracing.on else None
            reply = dispatcher.server.models.infer(request)
        except CoreError as error:
            self.receive(error, True)
        except Exception as error:  # the waiting caller must get an answer
            logger.exception(
                "[request id: %s] a request for model '%s' failed",
                request.id or "<id_unknown>",
                request.model_name,
            )
            self.receive(internal(f"{type(error).__name__}: {error}"), True)
        else:
            dispatcher.pending.add(self)
            reply.listen(self)

    def __call__(self, item: Item, final: bool) -> None:
        """Pass an item of the reply to `receive`. The last one ends the request. Loop thread."""
        if final:
            self._dispatcher.pending.discard(self)
        self.receive(item, final)

    def receive(self, item: Item, final: bool) -> None:
        """Handle an item of the reply, or the error that replaces it. Loop thread."""
        raise NotImplementedError

    def cancel(self) -> None:
        """Cancel the request; no effect if it has ended. Any thread."""
        with contextlib.suppress(CoreError):  # the server has ended, and the request with it
            self._dispatcher.thread.add(self.request.cancel)


class _SingleResponseRequest(PendingRequest):
    """A request that expects exactly one response. It is done at its end or at the first error.

    It is an error, too, if a reply ends without a response or with several.
    """

    def __init__(self, dispatcher: Dispatcher, request: InferenceRequest):
        super().__init__(dispatcher, request)
        self._response: InferenceResponse | None = None
        self._error: CoreError | None = None
        self._count = 0
        self._done = False

    def receive(self, item: Item, final: bool) -> None:
        if self._done:
            return
        if isinstance(item, CoreError):
            self._error = item
        elif item is not None:
            self._response = item
            self._count += 1
        if final and self._error is None and self._count != 1:
            self._error = not_single(self._count)
        if final or self._error is not None:
            self._done = True
            self.wake()

    def wake(self) -> None:
        """Wake the caller of `wait`, because the response or an error has arrived. Loop thread."""
        raise NotImplementedError

    def _result(self) -> Response:
        if self._error is not None:
            raise copy_of(self._error)
        assert self._response is not None
        return Response(self._response)


class BlockingRequest(_SingleResponseRequest):
    """A request for which a thread waits."""

    def __init__(self, dispatcher: Dispatcher, request: InferenceRequest):
        super().__init__(dispatcher, request)
        self._finished = threading.Lock()
        self._finished.acquire()

    def wake(self) -> None:
        self._finished.release()

    def wait(self, timeout_s: float | None) -> Response:
        """Send the request and return its response. Not on the loop thread.

        Raises the request's error, Timeout, or what interrupts the wait; the last two cancel the request.
        """
        thread = self._dispatcher.thread
        if thread.is_current:
            raise would_deadlock("infer")
        try:
            thread.add(self.begin)
            in_time = self._wait_finished(timeout_s)
        except BaseException:  # KeyboardInterrupt, or what another signal handler raises
            self.cancel()
            raise
        if not in_time:
            self.cancel()
            raise timed_out(self.request, timeout_s)
        return self._result()

    def _wait_finished(self, timeout_s: float | None) -> bool:
        if timeout_s is None:
            # A signal just before a lock begins to wait does not wake it: wake up from time to time.
            while not self._finished.acquire(timeout=SIGNAL_CHECK_S):
                pass
            return True
        end_s = time.monotonic() + timeout_s
        while (left_s := end_s - time.monotonic()) > 0:
            if self._finished.acquire(timeout=min(SIGNAL_CHECK_S, left_s)):
                return True
        return self._finished.acquire(blocking=False)


class AsyncRequest(_SingleResponseRequest):
    """A request for which a coroutine waits, on any loop."""

    def __init__(self, dispatcher: Dispatcher, request: InferenceRequest):
        super().__init__(dispatcher, request)
        self._calls: CallQueue | None = None  # of the coroutine's loop; None: the server's
        self._future: asyncio.Future[None] | None = None

    def wake(self) -> None:
        if self._calls is None:
            self._set_future()
        else:
            with contextlib.suppress(CoreError):  # the coroutine's loop is closed
                self._calls.add(self._set_future)

    def _set_future(self) -> None:
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    async def wait(self, timeout_s: float | None) -> Response:
        """Send the request and return its response.

        Raises the request's error or Timeout. Timeout and cancellation of the task cancel the request.
        """
        loop = asyncio.get_running_loop()
        future = self._future = loop.create_future()
        if loop is self._dispatcher.thread.loop:
            self.begin()
        else:
            self._calls = running_loop_queue()
            self._dispatcher.thread.add(self.begin)
        timer = None if timeout_s is None else loop.call_later(timeout_s, self._set_future)
        try:
            await future
        except asyncio.CancelledError:
            if not self._done:
                self.cancel()
            raise
        finally:
            if timer is not None:
                timer.cancel()
        if not self._done:
            self.cancel()
            raise timed_out(self.request, timeout_s)
        return self._result()


def set_deadline(request: InferenceRequest, timeout_s: float) -> None:
    """Set the deadline of a request to `timeout_s` from now. Raises CoreError(INVALID) for a bad timeout."""
    if not isinstance(timeout_s, Real) or not 0 < timeout_s <= MAX_TIMEOUT_S:
        raise CoreError(Kind.INVALID, f"timeout={timeout_s!r}: give seconds above 0, or None")
    request.deadline_ns = time.monotonic_ns() + int(timeout_s * 1e9)


def timed_out(request: InferenceRequest, timeout_s: float | None) -> Timeout:
    return Timeout(
        Kind.UNAVAILABLE,
        f"model '{request.model_name}' did not answer within {timeout_s} s; the request is cancelled",
    )


def copy_of(error: CoreError) -> CoreError:
    """Return a copy of an error for one caller to raise, since raising adds a traceback to a shared error.

    The copy is a plain CoreError with the same kind, text and cause, whatever the class of `error`.
    """
    copy = CoreError(error.kind, error.message)
    copy.__cause__ = error.__cause__  # the exception of a function, with its traceback
    return copy
