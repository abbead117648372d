import asyncio
from collections.abc import Callable

from core.native.clock import Clock

class Alarm:
    """Calls `callback` on the loop when a time has come. Loop thread only.

    Timers of event loops count milliseconds: epoll_wait does, and libuv, under uvloop, rounds to the
    nearest, so that 400 µs are none at all and 600 µs may be two milliseconds. A batch that may wait for
    300 µs needs better. So on Linux the time is one of the kernel's own timers (timerfd_create(2)), whose
    descriptor the loop watches. It is set only for times earlier than the one that it is set for, since
    most alarms are put off before they come. With a clock that is not the real one (in tests), or where
    there are no such timers, it is `loop.call_later`.

    clock   what `at_ns` is measured with
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, clock: Clock, callback: Callable[[], object]
    ) -> None: ...
    def set(self, at_ns: int) -> None:
        """Call at `at_ns`, at once if it has passed, not at the time that was set before; 0: not at all."""
    def close(self) -> None:
        """Give back the timer. Nothing is called any more, and `set` does nothing."""
