import asyncio
from collections.abc import Callable
from typing import Any

class Relay:
    """Work for one thread, in order, and what the thread has to tell the loop.

    The loop is not woken while the thread holds the interpreter, for which it could only wait: on one
    processor each such wake is a change of the thread for nothing. It is woken when the thread waits for
    more work, and has let the interpreter go. On Linux this is a semaphore, and one eventfd(2) for all
    relays of a loop; elsewhere a queue, and the loop's own call_soon_threadsafe.

    loop   for which `tell` is
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None: ...
    def put(self, work: Any) -> None:
        """Give the thread something to do. Any thread."""

    def take(self) -> Any:
        """What is to be done next; waits for it. Before that the loop hears what was told. The one thread."""

    def tell(self, function: Callable[[Any, Any], object], work: Any, error: Any) -> None:
        """Have the loop call `function(work, error)` after the next `take` has begun. The one thread.

        An exception of the function is logged, and nothing else is the less called.
        """

    def close(self) -> None:
        """The thread has ended, or will not tell anything any more. Once or again. Loop thread."""
