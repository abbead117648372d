"""Give memory back to the system that grpcio has freed and that no memory account counts.

engine_grpcio ─► [FreeMemoryWatch] ─► core.system.heap ─► the C library.
"""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Callable

from core.system import heap

LOOK_S = 5.0  # between two checks of a FreeMemoryWatch


class FreeMemoryWatch:
    """Returns freed memory that no account counts, such as that of a library with its own connections.

    Event loop only.

    free   returns how many freed bytes the C library keeps
    trim   returns them to the system; called on a thread
    """

    def __init__(
        self, free: Callable[[], int] | None = None, trim: Callable[[], None] | None = None
    ):
        self._free = free_bytes() if free is None else free
        self._trim = heap.system_trim() if trim is None else trim
        self._timer: asyncio.TimerHandle | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Check every LOOK_S seconds. Do nothing if the C library cannot count or return memory."""
        if self._free is not None and self._trim is not None:
            self._timer = loop.call_later(LOOK_S, self._look, loop)

    def stop(self) -> None:
        """Stop checking."""
        if self._timer is not None:
            self._timer.cancel()

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        assert self._free is not None and self._trim is not None
        if self._free() > heap.KEPT + heap.WORTH_A_TRIM:
            loop.run_in_executor(None, self._trim)
        self.start(loop)


class _MallInfo(ctypes.Structure):
    """struct mallinfo2 of malloc.h; fordblks: freed bytes in all arenas."""

    _names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = [(name, ctypes.c_size_t) for name in _names.split()]


def free_bytes() -> Callable[[], int] | None:
    """Return the function that counts freed memory; None without glibc 2.33 or later."""
    if (mallinfo := heap.glibc("mallinfo2")) is None:
        return None
    mallinfo.restype = _MallInfo
    return lambda: int(mallinfo().fordblks)
