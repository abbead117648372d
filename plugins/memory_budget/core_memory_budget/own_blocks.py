"""OwnBlocks: weights in blocks of their own, which the system gets back when a model is unloaded.

core lets glibc keep blocks up to heap.LARGEST in its heaps, so that batches cost no page faults. Free memory
at the end of a thread's heap stays there: malloc_trim(3) trims only the end of the first heap. While a load
runs, larger blocks are mapped (mallopt(3), M_MMAP_THRESHOLD), and unmapped as soon as they are freed.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from core.system import heap

LEAST = 128 << 10  # bytes of a block that is mapped while a load runs
_MMAP_THRESHOLD = -3  # in malloc.h
_VARIABLE = "MALLOC_MMAP_THRESHOLD_"


class OwnBlocks:
    """Lowers the threshold for as long as any load runs. Event loop only.

    Does nothing without glibc, and if an operator has chosen a threshold.
    """

    def __init__(
        self,
        mallopt: Callable[[int, int], Any] | None = None,
        environment: Mapping[str, str] = os.environ,
    ):
        self._mallopt = mallopt or _glibc_mallopt()
        self._environment = environment
        self._loads = 0

    @contextmanager
    def during_a_load(self) -> Iterator[None]:
        """Map the blocks that are allocated in the block, those of other threads too."""
        self._loads += 1
        if self._loads == 1:
            self._set(LEAST)
        try:
            yield
        finally:
            self._loads -= 1
            if not self._loads:
                self._set(heap.LARGEST)

    def _set(self, size: int) -> None:
        # heap.keep sets the variable to heap.LARGEST. Without it, as in a process with a core.Server, glibc
        # raises the threshold by itself, up to that size.
        chosen = self._environment.get(_VARIABLE, str(heap.LARGEST)) != str(heap.LARGEST)
        tuned = "glibc.malloc" in self._environment.get("GLIBC_TUNABLES", "")
        if self._mallopt is not None and not chosen and not tuned:
            self._mallopt(_MMAP_THRESHOLD, size)


def _glibc_mallopt() -> Callable[[int, int], Any] | None:
    try:
        found: Callable[[int, int], Any] = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # musl, macOS, Windows
        return None
    return found
