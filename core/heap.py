"""How much freed memory a server keeps for what comes next.

process ─► [keep] ─► the C library.  A framework takes the memory of a batch piece by piece and frees it
again. glibc gives what is free at the end of its heap back to the system, by default from 128 KB on, and
gets it again for the next batch: each page with a fault, and filled with zeros. It learns better from
large blocks that are freed (mallopt(3), M_MMAP_THRESHOLD), but only from larger ones than the batches'.
"""

from __future__ import annotations

import ctypes
import os

# The most that glibc comes to by itself, on machines of 64 bits.
LARGEST = 32 << 20
"""Bytes of a block from which on it is the system's, and goes back to it as soon as it is freed."""
KEPT = 64 << 20
"""Bytes that may be free at the end of the heap."""

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
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # musl, macOS, Windows
        return
    for number, name, value in _SETTINGS:
        mallopt(number, value)
        os.environ[name] = str(value)
