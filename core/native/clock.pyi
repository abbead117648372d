from collections.abc import Callable

def wall_ms() -> int:
    """Milliseconds since the epoch, up to some milliseconds old: as of the kernel's last tick."""

class Clock:
    """Nanoseconds that only grow: time.monotonic_ns, or what a test gives as the time. Any thread.

    For compiled rooms, which read it without making an object.
    """

    def __init__(self, source: Callable[[], int] = ...) -> None: ...
    def __call__(self) -> int: ...
    def now_ns(self) -> int: ...
