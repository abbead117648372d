"""How much freed memory a server keeps for what comes next, and when it gives memory back.

process ─► [keep] ─► the C library ◄─ [Trimmer] ◄─ MemoryAccount.  A framework takes the memory of a batch
piece by piece and frees it again. glibc gives what is free at the end of its heap back to the system, by
default from 128 KB on, and gets it again for the next batch: each page with a fault, and filled with zeros.
It learns better from large blocks that are freed (mallopt(3), M_MMAP_THRESHOLD), but only from larger ones
than the batches'.

Only the end of the heap goes back by itself. One block in use there keeps all that is free below it, so
the memory of requests that are gone would stay. A Trimmer asks for it (malloc_trim(3)) when much was freed.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
from collections.abc import Callable
from typing import Any

# The most that glibc comes to by itself, on machines of 64 bits.
LARGEST = 32 << 20
"""Bytes of a block from which on it is the system's, and goes back to it as soon as it is freed."""
KEPT = 64 << 20
"""Bytes that may be free at the end of the heap."""
WORTH_A_TRIM = 64 << 20
"""Bytes that requests and answers must have freed before a Trimmer gives memory back."""
TRIM_DELAY_S = 2.0
"""Seconds from then until it does: what was freed may be needed again, and is freed a little later."""
LOOK_S = 5.0
"""Seconds between two looks of a FreeMemoryWatch."""

_SETTINGS = (  # the number in malloc.h, the variable of other processes, the value
    (-3, "MALLOC_MMAP_THRESHOLD_", LARGEST),
    (-1, "MALLOC_TRIM_THRESHOLD_", KEPT),
)


def keep() -> None:
    """Keep freed memory, here and in the processes that are started from here.

    Whoever starts a server may choose something else: where one of these variables is set, or GLIBC_TUNABLES
    for malloc, nothing is changed. With another C library than glibc there is nothing to change.
    """
    chosen = any(name in os.environ for _, name, _ in _SETTINGS)
    if chosen or "glibc.malloc" in os.environ.get("GLIBC_TUNABLES", ""):
        return
    if (mallopt := _glibc("mallopt")) is not None:
        for number, name, value in _SETTINGS:
            mallopt(number, value)
            os.environ[name] = str(value)


class Trimmer:
    """Gives freed memory back to the system some time after much was freed. Event loop thread only.

    trim   what gives it back, on a thread, for it takes about a millisecond for each 4 MB that it finds
    """

    def __init__(self, trim: Callable[[], None] | None = None):
        self._trim = _system_trim() if trim is None else trim
        self._freed = 0
        self._waits = False

    def freed(self, size: int) -> None:
        """Count `size` bytes that requests or answers do not hold any more."""
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
        except RuntimeError:  # the loop closes
            return
        done.add_done_callback(self._end)

    def _end(self, done: asyncio.Future[None]) -> None:
        self._waits = False


def _system_trim() -> Callable[[], None] | None:
    """Return what gives freed memory back; None with another C library than glibc."""
    malloc_trim = _glibc("malloc_trim")
    return None if malloc_trim is None else lambda: malloc_trim(0)


class FreeMemoryWatch:
    """Gives freed memory back that no account counts, such as that of a library with its own connections.

    Event loop only.

    free   returns how many freed bytes the C library keeps; None if it cannot tell
    trim   gives them back, on a thread
    """

    def __init__(
        self, free: Callable[[], int] | None = None, trim: Callable[[], None] | None = None
    ):
        self._free = _free_bytes() if free is None else free
        self._trim = _system_trim() if trim is None else trim
        self._timer: asyncio.TimerHandle | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Look every LOOK_S seconds."""
        if self._free is not None and self._trim is not None:
            self._timer = loop.call_later(LOOK_S, self._look, loop)

    def stop(self) -> None:
        """Look no more."""
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
    """Return what counts freed memory; None with another C library than glibc 2.33 and later."""
    if (mallinfo := _glibc("mallinfo2")) is None:
        return None
    mallinfo.restype = _MallInfo
    return lambda: int(mallinfo().fordblks)


def _glibc(function: str) -> Any:
    """Return a function of the C library; None if it has none of this name (musl, macOS, Windows)."""
    try:
        return getattr(ctypes.CDLL(None), function)
    except (AttributeError, OSError, TypeError):
        return None
