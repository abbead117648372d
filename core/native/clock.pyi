from collections.abc import Callable

def wall_ms() -> int:
    """Return milliseconds since the epoch, as of the kernel's last tick: a few milliseconds old."""

class Clock:
    """Monotonic clock in nanoseconds: time.monotonic_ns, or the clock of a test. Thread-safe.

    Compiled code reads it without creating an object.
    """

    def __init__(self, source: Callable[[], int] = ...) -> None: ...
    def __call__(self) -> int: ...
    def now_ns(self) -> int: ...
