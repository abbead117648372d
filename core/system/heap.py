"""How much freed memory a server keeps for later use, and when it gives memory back to the system.

process ─► [keep] ─► the C library ◄─ [Trimmer] ◄─ MemoryAccount.  A framework allocates the memory of a batch
in pieces and frees it again. By default glibc returns the free end of its heap to the system from 128 KB on,
so the next batch costs a fault for each page. glibc learns (mallopt(3), M_MMAP_THRESHOLD) from larger blocks
only. One block in use at the end of the heap keeps all free memory below it: a Trimmer returns that
(malloc_trim(3)) when much was freed. It leaves the free ends of further heaps: there are few of these.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
from collections.abc import Callable
from typing import Any

from core.system.platform import cores

LARGEST = 32 << 20  # bytes; glibc takes larger blocks from the system, and returns them once freed
KEPT = 64 << 20  # bytes that may be free at the end of the heap
WORTH_A_TRIM = 64 << 20  # bytes that requests and answers must have freed before a Trimmer acts
TRIM_DELAY_S = 2.0  # from then until it does: freed memory may be needed again, or more be freed

_SETTINGS = (  # groups of: the number in malloc.h, the variable of other processes, the value
    ((-3, "MALLOC_MMAP_THRESHOLD_", LARGEST), (-1, "MALLOC_TRIM_THRESHOLD_", KEPT)),
    ((-8, "MALLOC_ARENA_MAX", max(2, len(cores()))),),  # heaps, each with up to KEPT
)


def keep() -> None:
    """Keep freed memory, in this process and in those that it starts.

    A group of _SETTINGS stays as it is if the environment has one of its variables. Nothing changes if
    GLIBC_TUNABLES sets malloc, or without glibc.
    """
    mallopt = glibc("mallopt")
    if mallopt is None or "glibc.malloc" in os.environ.get("GLIBC_TUNABLES", ""):
        return
    for group in _SETTINGS:
        if any(name in os.environ for _, name, _ in group):
            continue
        for number, name, value in group:
            mallopt(number, value)
            os.environ[name] = str(value)


class Trimmer:
    """Returns freed memory to the system some time after much was freed. Event loop only.

    trim   returns freed memory; called on a thread, since that takes about a millisecond for each 4 MB
    """

    def __init__(self, trim: Callable[[], None] | None = None):
        self._trim = system_trim() if trim is None else trim
        self._freed = 0
        self._waits = False

    def freed(self, size: int) -> None:
        """Count `size` freed bytes. Plan a trim once WORTH_A_TRIM were counted since the last began."""
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


def system_trim() -> Callable[[], None] | None:
    """Return a function that gives freed memory back to the system; None without glibc."""
    malloc_trim = glibc("malloc_trim")
    return None if malloc_trim is None else lambda: malloc_trim(0)


async def trim() -> None:
    """Give freed memory back to the system, on a thread; do nothing without glibc."""
    if (give := system_trim()) is not None:
        await asyncio.get_running_loop().run_in_executor(None, give)


def glibc(function: str) -> Any:
    """Return a function of the C library; None if it has none of this name (musl, macOS, Windows)."""
    try:
        return getattr(ctypes.CDLL(None), function)
    except (AttributeError, OSError, TypeError):
        return None
