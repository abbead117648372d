import asyncio
from collections.abc import Callable
from typing import Any

class ThreadQueue:
    """Queue of work for one thread, and of calls that the thread makes on the event loop.

    The thread wakes the loop only when it waits for more work and has released the GIL. An earlier wake-up
    would make the loop wait for the GIL; on one processor that is a useless thread switch. On Linux it uses a
    semaphore and one eventfd(2) for all queues of a loop; elsewhere queue.SimpleQueue and the loop's
    call_soon_threadsafe.

    loop   on which `call_on_loop` calls
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None: ...
    def put(self, work: Any) -> None:
        """Add work for the thread. Thread-safe."""

    def take(self) -> Any:
        """Wake the loop if it has calls to make, then wait for the next work and return it.

        Thread of the queue.
        """

    def call_on_loop(self, function: Callable[[Any, Any], object], work: Any, error: Any) -> None:
        """Let the loop call `function(work, error)` after the next `take` has begun. Thread of the queue.

        An exception of the function is logged.
        """

    def close(self) -> None:
        """Release the queue after the thread has ended. A second call does nothing. Event loop only."""
