"""CallQueue: calls from other threads to one event loop. LoopThread: an event loop on its own thread.

thread of the program ─► [CallQueue] ─► the server's loop; responses return through the queue of the
program's loop. One wake-up of a loop runs all calls that wait, however many threads made them.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from core.errors import CoreError, invalid, unavailable

T = TypeVar("T")

STOPPED = "the server is stopped"
FORKED = (
    "this process was forked from the one that the server runs in, and has no part of it: start a "
    "server here, or start processes with the method 'spawn'"
)
_CANCEL_TIMEOUT_S = 1.0  # for the last tasks of a loop


class CallQueue:
    """Calls for one event loop, which runs them in order. Any thread may add one."""

    def __init__(self, loop: asyncio.AbstractEventLoop):
        self.loop = loop
        self._calls: deque[Callable[[], None]] = deque()
        self._woken = False
        self._closed = ""  # why the queue refuses calls

    def add(self, call: Callable[[], None]) -> None:
        """Let the loop run `call`, which must not raise; do not wait for it.

        Raises CoreError(UNAVAILABLE) if the queue or its loop is closed; then the call does not run.
        """
        self._calls.append(call)
        if self._closed:
            # Test after the append: `close` runs every call that it finds in the queue.
            self._take_back(call, self._closed)
        elif not self._woken or self.loop.is_closed():
            self._woken = True
            try:
                self.loop.call_soon_threadsafe(self._run_calls)
            except RuntimeError:  # the loop was closed meanwhile
                self._woken = False
                self._take_back(call, STOPPED)

    def _take_back(self, call: Callable[[], None], reason: str) -> None:
        """Raise CoreError(UNAVAILABLE), unless the call has run meanwhile."""
        with contextlib.suppress(ValueError):
            self._calls.remove(call)
            raise unavailable(reason) from None

    def close(self, reason: str) -> None:
        """Run the calls that wait and refuse new ones. Call on the loop."""
        self._closed = reason
        while self._calls:
            self._calls.popleft()()

    def abandon(self, reason: str) -> None:
        """Drop the calls that wait and refuse new ones. For a forked process, which has no loop thread."""
        self._closed = reason
        self._calls.clear()

    def _run_calls(self) -> None:
        self._woken = False
        # Run only the calls that wait now: each may add another one, and the loop has other work.
        for _ in range(len(self._calls)):
            self._calls.popleft()()
        if self._calls and not self._woken:
            self._woken = True
            self.loop.call_soon(self._run_calls)


class LoopThread(CallQueue):
    """An event loop on its own thread, until `end`. Any thread may call `add`, `is_current` and `start`."""

    def __init__(self, name: str) -> None:
        super().__init__(_new_loop())
        # A daemon: the interpreter waits for other threads before it stops servers.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def is_current(self) -> bool:
        """Return whether the caller runs on this thread. Such a caller must not wait for the loop."""
        return threading.get_ident() == self._thread.ident

    def start(self, coroutine: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Start a coroutine on the loop. Cancelling the returned future cancels the coroutine.

        Raises CoreError(UNAVAILABLE) if the loop has ended.
        """
        if self._closed:
            coroutine.close()
            raise unavailable(self._closed)
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop, wait for it, and return its result.

        Raises what the coroutine and `start` raise, and CoreError(INVALID) on the loop's own thread. An
        exception that interrupts the wait (KeyboardInterrupt) cancels the coroutine.
        """
        if self.is_current:
            coroutine.close()
            raise would_deadlock("this call")
        future = self.start(coroutine)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def end(self, *, complete: bool = True) -> None:
        """Cancel the tasks of the loop and end the thread. Not on the loop's own thread.

        complete   True if no other thread will call the loop; then the loop is closed. False leaves it
                   stopped but not closed, so that calls of abandoned threads do not raise
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
            self.loop.run_until_complete(_cancel_tasks(self.loop))
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            asyncio.set_event_loop(None)


def would_deadlock(what: str) -> CoreError:
    """Return the error for a call that waits for the server on the server's own thread."""
    return invalid(
        f"{what} waits for the server, and this is the server's own thread: await the method whose "
        "name ends in _async, or let the function run with placement='thread'"
    )


async def _cancel_tasks(loop: asyncio.AbstractEventLoop) -> None:
    tasks = asyncio.all_tasks(loop) - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if tasks:  # a task that ignores its cancellation is abandoned
        await asyncio.wait(tasks, timeout=_CANCEL_TIMEOUT_S)


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:  # not available on Windows; asyncio's loop works, but slower
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


_thread_local = threading.local()  # .calls: the queue of the loop that ran last on this thread


def running_loop_queue() -> CallQueue:
    """Return the CallQueue of the loop that runs on this thread.

    It is the same one at each call, until the function is called on this thread from another loop.
    """
    loop = asyncio.get_running_loop()
    found: CallQueue | None = getattr(_thread_local, "calls", None)
    if found is None or found.loop is not loop:
        found = _thread_local.calls = CallQueue(loop)
    return found
