"""Copy a large input in pieces: a device receives one piece while the host copies the next ones.

DeviceFeed ─► [Copier] ─► staging memory ─► device.

    host      piece 1 │ piece 2 │ piece 3 │
    device            │ piece 1 │ piece 2 │ piece 3
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from typing import Any

import numpy as np

from core.native.gather import gather
from core.system import platform

PIECE = 1 << 20  # bytes; each piece is one more call
LARGE = 4 * PIECE  # smaller inputs are copied at once
MOST_THREADS = 4  # the other cores have other work

Send = Callable[[int, int], None]


class Copier:
    """Copies large inputs for one instance, on several threads if the instance has cores for them.

    Create, use and close it on one thread. Its threads start with the first large input, and run on the
    cores of the thread that calls `copy`.

    threads   that copy; 1 for the calling thread alone, None for half of its cores, at most MOST_THREADS
    """

    def __init__(self, threads: int | None = None):
        self._threads = threads
        self._pool: ThreadPoolExecutor | None = None

    def copy(self, sources: Sequence[Any], out: np.ndarray, send: Send) -> None:
        """Copy buffers into `out`, one after another, and send each piece when it is copied.

        sources   contiguous buffers, none of them empty; as many bytes in all as `out`
        out       uint8[size]
        send      send(begin, end): the bytes from begin to end are in `out`. Called on this thread, in order
        """
        sources = [memoryview(each).cast("B") for each in sources]
        ends = list(accumulate(each.nbytes for each in sources))

        def copied(begin: int) -> None:
            end = min(begin + PIECE, out.size)
            gather(list(_between(sources, ends, begin, end)), out, begin)

        begins = range(0, out.size, PIECE)
        for begin, _ in zip(begins, self._all(copied, begins), strict=True):
            send(begin, min(begin + PIECE, out.size))

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()

    def _all(self, copied: Callable[[int], None], begins: Sequence[int]) -> Iterator[None]:
        """Copy all pieces. Yield after each one, in order."""
        if self._threads is None:
            self._threads = min(MOST_THREADS, len(platform.cores()) // 2)
        if self._threads <= 1:
            return map(copied, begins)
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, "pytorch-copy")
        return self._pool.map(copied, begins)


def _between(
    sources: Sequence[memoryview], ends: Sequence[int], begin: int, end: int
) -> Iterator[memoryview]:
    """Yield the parts of the sources that lie between two bytes of all of them in a row.

    ends   the byte after each source
    """
    for i in range(bisect_right(ends, begin), len(sources)):
        first = ends[i] - sources[i].nbytes
        if first >= end:
            return
        yield sources[i][max(begin - first, 0) : end - first]
