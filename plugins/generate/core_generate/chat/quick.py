"""quick_only: bounds what chat templates take of a thread that others wait for, such as an event loop's."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

QUICK_S = 0.02  # CPU time of a rendering; a usual template takes less than a tenth of it


class SlowTemplate(Exception):
    """Signals that a chat template may take long, and must be applied on another thread."""


class Pace:
    """What renderings have shown of a template's pace.

    slow   whether one within `quick_only` was stopped; it stays so
    """

    __slots__ = ("slow",)

    def __init__(self) -> None:
        self.slow = False


class _Thread(threading.local):
    quick = False


_thread = _Thread()


@contextmanager
def quick_only() -> Iterator[None]:
    """Within it, on this thread, `render` raises SlowTemplate instead of taking longer than QUICK_S.

    It also raises it for a template that has taken longer before, and for one that is not compiled yet.
    """
    before, _thread.quick = _thread.quick, True
    try:
        yield
    finally:
        _thread.quick = before


def is_quick_only() -> bool:
    """Return whether this thread is within `quick_only`."""
    return _thread.quick
