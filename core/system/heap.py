"""Heap settings: keep freed memory for later requests, and return large amounts to the system.

process ─► [keep] ─► the C library ◄─ [Trimmer] ◄─ MemoryAccount.  A framework allocates and frees the memory
of each batch. By default glibc returns free memory at the end of its heap to the system from 128 KB on, and
gets it again for the next batch, with a page fault and zeros for each page. glibc raises its thresholds only
when larger blocks than those of a batch are freed (mallopt(3), M_MMAP_THRESHOLD).

glibc returns only the end of the heap by itself: one used block there keeps all free memory below it. A
Trimmer therefore calls malloc_trim(3) after much memory was freed.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
from collections.abc import Callable

# The maximum that glibc's own adaptation reaches on 64-bit machines.
LARGEST = 32 << 20
"""Size in bytes from which malloc maps a block separately; such a block returns to the system when freed."""
KEPT = 64 << 20
"""Bytes that may be free at the end of the heap."""
WORTH_A_TRIM = 64 << 20
"""Bytes that requests and responses must have freed before a Trimmer returns memory to the system."""
TRIM_DELAY_S = 2.0
"""Delay in seconds before the trim: MemoryAccount counts bytes as freed a little before they are."""
LOOK_S = 5.0
"""Seconds between two checks of a FreeMemoryWatch."""

_SETTINGS = (  # the number in malloc.h, the variable of other processes, the value
    (-3, "MALLOC_MMAP_THRESHOLD_", LARGEST),
    (-1, "MALLOC_TRIM_THRESHOLD_", KEPT),
)


def keep() -> None:
    """Make glibc keep freed memory, in this process and in its child processes.

    Does nothing if the environment already configures malloc, with one of these variables or GLIBC_TUNABLES,
    and with another C library than glibc.
    """
    chosen = any(name in os.environ for _, name, _ in _SETTINGS)
    if chosen or "glibc.malloc" in os.environ.get("GLIBC_TUNABLES", ""):
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # musl, macOS, Windows
        return
    for number, name, value in _SETTINGS:
        mallopt(number, value)
        os.environ[name] = str(value)


class Trimmer:
    """Returns freed memory to the system after WORTH_A_TRIM bytes were freed. Event loop thread only.

    trim   function that returns it; runs on a thread, since it takes about 1 ms per 4 MB
    """

    def __init__(self, trim: Callable[[], None] | None = None):
        self._trim = _system_trim() if trim is None else trim
        self._freed = 0
        self._waits = False

    def freed(self, size: int) -> None:
        """Count `size` bytes that requests or responses no longer hold."""
        self._freed += size
        if self._freed < WORTH_A_TRIM or self._waits or self._trim is None:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        self._waits = True
        loop.call_later(TRIM_DELAY_S, self._begin, loop)

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        self._freed = 0
        assert self._trim is not None
        try:
            done = loop.run_in_executor(None, self._trim)
        except RuntimeError:  # the loop is closing
            return
        done.add_done_callback(self._end)

    def _end(self, done: asyncio.Future[None]) -> None:
        self._waits = False


def _system_trim() -> Callable[[], None] | None:
    """Return a function that calls malloc_trim(0); None with another C library than glibc."""
    try:
        malloc_trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # musl, macOS, Windows
        return None

    def trim() -> None:
        malloc_trim(0)

    return trim


class FreeMemoryWatch:
    """Returns freed memory that no account counts, such as memory of a library with its own connections.

    Call from the event loop only.

    free   returns the number of freed bytes that the C library keeps
    trim   returns them to the system; runs on a thread
    """

    def __init__(
        self, free: Callable[[], int] | None = None, trim: Callable[[], None] | None = None
    ):
        self._free = _free_bytes() if free is None else free
        self._trim = _system_trim() if trim is None else trim
        self._timer: asyncio.TimerHandle | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Check every LOOK_S seconds, unless the C library is not glibc."""
        if self._free is not None and self._trim is not None:
            self._timer = loop.call_later(LOOK_S, self._look, loop)

    def stop(self) -> None:
        """Stop checking."""
        if self._timer is not None:
            self._timer.cancel()

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        assert self._free is not None and self._trim is not None
        if self._free() > KEPT + WORTH_A_TRIM:
            loop.run_in_executor(None, self._trim)
        self.start(loop)


class _MallInfo(ctypes.Structure):
    """struct mallinfo2 of malloc.h; fordblks: freed bytes in all arenas."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


def _free_bytes() -> Callable[[], int] | None:
    """Return a function that counts freed bytes; None with a C library other than glibc 2.33 or later."""
    try:
        mallinfo = ctypes.CDLL(None).mallinfo2
    except (AttributeError, OSError, TypeError):
        return None
    mallinfo.restype = _MallInfo
    return lambda: int(mallinfo().fordblks)
