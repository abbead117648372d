import asyncio
from collections.abc import Callable
from typing import Any

def caller_on(loop: asyncio.AbstractEventLoop) -> Callable[[Callable[[], object]], object]:
    """Return a cheaper form of loop.call_soon_threadsafe: many calls wake the loop once. Event loop only."""

class ThreadQueue:
    """Queue of work for one thread, and of calls that the thread makes on the event loop.

    The thread wakes the loop only when it waits for more work and has released the GIL. An earlier wake-up
    would make the loop wait for the GIL; on one processor that is a useless thread switch. On Linux it uses a
    semaphore and one eventfd(2) for all queues of a loop; elsewhere queue.SimpleQueue and the loop's
    call_soon_threadsafe.

    loop   the event loop that runs the calls of `call_on_loop`
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None: ...
    def put(self, work: Any) -> None:
        """Add work for the thread. Thread-safe."""

    def take(self) -> Any:
        """Wake the loop if `call_on_loop` was used, then wait for the next work and return it.

        Call it on the thread of the queue only.
        """

    def call_on_loop(self, function: Callable[[Any, Any], object], work: Any, error: Any) -> None:
        """Schedule `function(work, error)` on the loop; it may run only after the next `take` has begun.

        Call it on the thread of the queue only. An exception of the function is logged.
        """

    def close(self) -> None:
        """Stop using the loop, after the thread has ended. A second call does nothing. Event loop only."""
