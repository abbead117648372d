"""How a request leaves the caller's thread, and how its one answer comes back.

core.Server.infer ─► [Asked] ─► mailbox ─► Models.infer ─► Reply ─► [Asked] ─► who waits.  There is no task
and no coroutine on the side of the server.
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

from core.embedded.mailbox import LoopThread, Mailbox, mailbox_here, waits_for_itself
from core.embedded.values import Response, Timeout
from core.errors import CoreError, Kind, internal
from core.request import InferenceRequest
from core.response import InferenceResponse, not_single

if TYPE_CHECKING:
    from core.server import InferenceServer

logger = logging.getLogger("core")

MOST_TIMEOUT_S = 1e9  # some thirty years: more does not fit into clocks
LOOK_S = 0.5  # how long a thread waits before it sees a signal that came at the wrong moment

Item = InferenceResponse | CoreError | None


class Desk:
    """Where requests of this process are handed in. Loop thread, but for `thread`.

    thread   of the server's loop; any thread
    server   takes the requests; None before the start and after the end
    asked    the requests that have no last answer yet
    """

    def __init__(self, thread: LoopThread) -> None:
        self.thread = thread
        self.server: InferenceServer | None = None
        self.closed = "the server is not started"  # why no requests are taken
        self.asked: set[Asked] = set()

    def open(self, server: InferenceServer) -> None:
        """Take requests for it."""
        self.server, self.closed = server, ""

    def close(self, reason: str) -> None:
        """Take no new requests."""
        self.closed = reason

    def give_up(self, reason: str) -> None:
        """No answer will come any more: tell all who wait."""
        for asked in list(self.asked):
            asked(CoreError(Kind.UNAVAILABLE, reason), True)


inside: ContextVar[Desk | None] = ContextVar("inside", default=None)
"""The server that runs the function which runs here: its requests are served until the end, for the
request that it answers was accepted."""


class Asked:
    """One request on its way, the listener of its reply. Made where it is asked.

    request   written on the loop thread from `begin` on
    """

    def __init__(self, desk: Desk, request: InferenceRequest):
        self.request = request
        self._desk = desk
        self._inside = inside.get() is desk

    def begin(self) -> None:
        """Hand the request in. Loop thread; never raises."""
        desk = self._desk
        try:
            if desk.server is None or (desk.closed and not self._inside):
                raise CoreError(Kind.UNAVAILABLE, desk.closed)
            reply = desk.server.models.infer(self.request)
        except CoreError as error:
            self.take(error, True)
        except Exception as error:  # nobody else would tell who waits
            logger.exception(
                "[request id: %s] a request for model '%s' failed",
                self.request.id or "<id_unknown>",
                self.request.model_name,
            )
            self.take(internal(f"{type(error).__name__}: {error}"), True)
        else:
            desk.asked.add(self)
            reply.listen(self)

    def __call__(self, item: Item, final: bool) -> None:
        """An item of the reply. Loop thread."""
        if final:
            self._desk.asked.discard(self)
        self.take(item, final)

    def take(self, item: Item, final: bool) -> None:
        """What comes back. Loop thread."""
        raise NotImplementedError

    def cancel(self) -> None:
        """Nobody waits any more. Any thread; without effect on a request that is over."""
        with contextlib.suppress(CoreError):  # the server is gone, and the request with it
            self._desk.thread.post(self.request.cancel)


class _AskedForOne(Asked):
    """A request whose one answer somebody waits for; an error ends the waiting at once."""

    def __init__(self, desk: Desk, request: InferenceRequest):
        super().__init__(desk, request)
        self.answer: InferenceResponse | None = None
        self.error: CoreError | None = None
        self._count = 0
        self._over = False

    def take(self, item: Item, final: bool) -> None:
        if self._over:
            return
        if isinstance(item, CoreError):
            self.error = item
        elif item is not None:
            self.answer = item
            self._count += 1
        if final and self.error is None and self._count != 1:
            self.error = not_single(self._count)
        if final or self.error is not None:
            self._over = True
            self.tell()

    def tell(self) -> None:
        """Wake who waits. Loop thread."""
        raise NotImplementedError

    def result(self) -> Response:
        """The answer; its error is raised."""
        if self.error is not None:
            raise fresh(self.error)
        assert self.answer is not None
        return Response(self.answer)


class AskedByThread(_AskedForOne):
    """A thread waits."""

    def __init__(self, desk: Desk, request: InferenceRequest):
        super().__init__(desk, request)
        self._told = threading.Lock()
        self._told.acquire()

    def tell(self) -> None:
        self._told.release()

    def wait(self, timeout_s: float | None) -> Response:
        """Hand the request in and wait for its answer. Not on the loop thread.

        Raises the request's error, Timeout, or what interrupts the waiting; the last two cancel it.
        """
        thread = self._desk.thread
        if thread.is_here:
            raise waits_for_itself("infer")
        try:
            thread.post(self.begin)
            in_time = self._wait_told(timeout_s)
        except BaseException:  # KeyboardInterrupt, or what another signal handler raises
            self.cancel()
            raise
        if not in_time:
            self.cancel()
            raise late(self.request, timeout_s)
        return self.result()

    def _wait_told(self, timeout_s: float | None) -> bool:
        if timeout_s is None:
            # Never for good: a signal that comes just before a lock begins to wait does not wake it.
            while not self._told.acquire(timeout=LOOK_S):
                pass
            return True
        end_s = time.monotonic() + timeout_s
        while not self._told.acquire(timeout=max(0.0, min(LOOK_S, end_s - time.monotonic()))):
            if time.monotonic() >= end_s:
                return False
        return True


class AskedByTask(_AskedForOne):
    """A coroutine waits, on any loop."""

    def __init__(self, desk: Desk, request: InferenceRequest):
        super().__init__(desk, request)
        self._mailbox: Mailbox | None = None
        self._future: asyncio.Future[None] | None = None

    def tell(self) -> None:
        if self._mailbox is None:
            self._wake()
        else:
            with contextlib.suppress(CoreError):  # that loop is closed: nobody waits there
                self._mailbox.post(self._wake)

    def _wake(self) -> None:
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    async def wait(self, timeout_s: float | None) -> Response:
        """Hand the request in and wait for its answer.

        Raises the request's error or Timeout; that and the cancellation of the task cancel it.
        """
        loop = asyncio.get_running_loop()
        future = self._future = loop.create_future()
        if loop is self._desk.thread.loop:
            self.begin()
        else:
            self._mailbox = mailbox_here()
            self._desk.thread.post(self.begin)
        timer = None if timeout_s is None else loop.call_later(timeout_s, self._wake)
        try:
            await future
        except asyncio.CancelledError:
            if not self._over:
                self.cancel()
            raise
        finally:
            if timer is not None:
                timer.cancel()
        if not self._over:
            self.cancel()
            raise late(self.request, timeout_s)
        return self.result()


def deadline(request: InferenceRequest, timeout_s: float | None) -> None:
    """Let the request know how long somebody waits. Raises CoreError(INVALID) for no time at all."""
    if timeout_s is None:
        return
    if not isinstance(timeout_s, Real) or not 0 < timeout_s <= MOST_TIMEOUT_S:
        raise CoreError(Kind.INVALID, f"timeout={timeout_s!r}: give seconds above 0, or None")
    request.deadline_ns = time.monotonic_ns() + int(timeout_s * 1e9)


def late(request: InferenceRequest, timeout_s: float | None) -> Timeout:
    return Timeout(
        Kind.UNAVAILABLE,
        f"model '{request.model_name}' did not answer within {timeout_s} s; the request is cancelled",
    )


def fresh(error: CoreError) -> CoreError:
    """The same error for one of those whom it concerns: a raised error belongs to its thread."""
    copy = CoreError(error.kind, error.message)
    copy.__cause__ = error.__cause__  # the exception of a function, with its traceback
    return copy
