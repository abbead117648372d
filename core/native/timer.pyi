import asyncio
from collections.abc import Callable

from core.native.clock import Clock

class LoopTimer:
    """Timer for one call of `callback` at a time. Not thread-safe: call from the event loop only.

    Timers of event loops have a resolution of milliseconds: epoll_wait counts milliseconds, and uvloop
    rounds to the nearest one, so 400 µs may be 0 and 600 µs may be 2 ms. A batch that may wait for 300 µs
    needs more precision. On Linux this class therefore uses a timer of the kernel (timerfd_create(2)), whose
    descriptor the loop watches. It changes the kernel's timer only for an earlier time, since most times are
    postponed before they come. With the clock of a test, or on other systems, it uses `loop.call_later`.

    clock   the clock that `at_ns` refers to
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, clock: Clock, callback: Callable[[], object]
    ) -> None: ...
    def set(self, at_ns: int) -> None:
        """Call `callback` once at `at_ns` instead of the time set before; soon if it is past, never for 0."""
    def close(self) -> None:
        """Release the timer. `callback` is not called any more, and `set` has no effect."""
