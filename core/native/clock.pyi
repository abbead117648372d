from collections.abc import Callable

def wall_ms() -> int:
    """Return the milliseconds since the Unix epoch; on Linux as of the last kernel tick, a few ms ago."""

class Clock:
    """Monotonic clock: the object and `now_ns` return nanoseconds. Thread-safe if `source` is.

    source   time.monotonic_ns, or the clock of a test, in nanoseconds too
    """

    def __init__(self, source: Callable[[], int] = ...) -> None: ...
    def __call__(self) -> int: ...
    def now_ns(self) -> int: ...
