"""Mailbox: calls for a loop from other threads. LoopThread: a loop that has a thread of its own.

a thread of the user ─► [Mailbox] ─► the server's loop, and back the same way.  One wake-up carries all
calls that wait, so many threads that ask at once wake the loop once.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from core.errors import CoreError, invalid, unavailable

T = TypeVar("T")

logger = logging.getLogger("core")

STOPPED = "the server is stopped"
FORKED = (
    "this process was forked from the one that the server runs in, and has no part of it: start a "
    "server here, or start processes with the method 'spawn'"
)
_LAST_TASKS_S = 1.0  # for tasks that were cancelled at the very end


class Mailbox:
    """Calls that are to happen on one loop. Any thread posts.

    loop   where they happen, in the order in which they came
    """

    def __init__(self, loop: asyncio.AbstractEventLoop):
        self.loop = loop
        self._calls: deque[Callable[[], None]] = deque()
        self._woken = False
        self._closed = ""  # why nothing is taken any more

    def post(self, call: Callable[[], None]) -> None:
        """Call `call`, which must not raise, on the loop, soon.

        Raises CoreError(UNAVAILABLE) when the mailbox is closed; then it is not called.
        """
        self._calls.append(call)
        if self._closed:
            # Behind the append: what was put there before the last look will be called after all.
            with contextlib.suppress(ValueError):
                self._calls.remove(call)
                raise unavailable(self._closed)
        elif not self._woken:
            self._woken = True
            try:
                self.loop.call_soon_threadsafe(self._deliver)
            except RuntimeError:  # the loop was closed meanwhile
                raise unavailable(STOPPED) from None

    def close(self, reason: str) -> None:
        """Take nothing any more; what has been posted is called now. On the loop."""
        self._closed = reason
        while self._calls:
            self._calls.popleft()()

    def abandon(self, reason: str) -> None:
        """Take nothing any more, after a fork: the loop's thread is not in this process."""
        self._closed = reason
        self._calls.clear()

    def _deliver(self) -> None:
        self._woken = False
        # Not until it is empty: who answers at once is asked again at once, and the loop has more to do.
        for _ in range(len(self._calls)):
            self._calls.popleft()()
        if self._calls and not self._woken:
            self._woken = True
            self.loop.call_soon(self._deliver)


class LoopThread(Mailbox):
    """A loop on a thread of its own, until `end`. Any other thread calls."""

    def __init__(self, name: str) -> None:
        super().__init__(_new_loop())
        # A daemon: the interpreter waits for others before anybody could end this one.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def is_here(self) -> bool:
        """Whether the caller is on this thread, and so must not wait for it."""
        return threading.get_ident() == self._thread.ident

    def start(self, coroutine: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Run a coroutine on the loop. Cancelling the future cancels it.

        Raises CoreError(UNAVAILABLE) when there is no loop any more.
        """
        if self._closed:
            coroutine.close()
            raise unavailable(self._closed)
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop and wait for its end.

        Raises what it raises, and CoreError(INVALID) on the loop's own thread, which would wait for
        itself. An exception that ends the waiting (KeyboardInterrupt) cancels the coroutine.
        """
        if self.is_here:
            coroutine.close()
            raise waits_for_itself("this call")
        future = self.start(coroutine)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def end(self, *, complete: bool = True) -> None:
        """Cancel what still runs on the loop, and end the thread. Not on the loop's thread.

        complete   whether no other thread will call the loop any more; else it is stopped and not
                   closed, so that those who were left behind may tell it what nobody hears
        """
        self.loop.call_soon_threadsafe(self._stop)
        self._thread.join()
        if complete:
            self.loop.close()

    def _stop(self) -> None:
        self.close(STOPPED)
        self.loop.stop()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            self.loop.run_until_complete(_end_tasks(self.loop))
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            asyncio.set_event_loop(None)


def waits_for_itself(what: str) -> CoreError:
    """The error for who would block the loop with waiting for it."""
    return invalid(
        f"{what} waits for the server, and this is the server's own thread: await the method whose "
        "name ends in _async, or let the function run with placement='thread'"
    )


async def _end_tasks(loop: asyncio.AbstractEventLoop) -> None:
    left = asyncio.all_tasks(loop) - {asyncio.current_task()}
    for task in left:
        task.cancel()
    if left:  # one that does not end when it is cancelled is left behind
        await asyncio.wait(left, timeout=_LAST_TASKS_S)


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:  # not on Windows; asyncio's own loop does the same, slower
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


_mine = threading.local()  # .mailbox: of the loop that ran last on this thread


def mailbox_here() -> Mailbox:
    """The mailbox of the loop that runs on this thread; the same one for all calls on it."""
    loop = asyncio.get_running_loop()
    found: Mailbox | None = getattr(_mine, "mailbox", None)
    if found is None or found.loop is not loop:
        found = _mine.mailbox = Mailbox(loop)
    return found
