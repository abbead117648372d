"""Threads that share the rows of a large batch.

instance ─► [workers] ─► native.forest, without the GIL.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

from core.system import platform

_MOST = 8
_SHARE = 2_000_000  # comparisons per thread at least: some milliseconds of a core
_GROUP = 8  # rows that native code processes together


def threads_by_default(cores: frozenset[int]) -> int:
    """Return the default number of threads, at most eight: one per core of the host policy.

    cores   cores of the host policy; if empty, all cores of the process count but one, which the server uses
    """
    allowed = len(cores) if cores else len(platform.cores()) - 1
    return max(1, min(_MOST, allowed))


class Workers:
    """The threads of one model. The first large batch starts them. `share` is thread-safe.

    threads   number of threads that work on one batch, the caller's included
    """

    def __init__(self, threads: int):
        self.threads = threads
        self._pool: ThreadPoolExecutor | None = None
        self._starting = Lock()

    def share(self, rows: int, steps_of_a_row: float, work: Callable[[int, int], None]) -> None:
        """Call work(start, stop) for parts of `rows`, and return when all parts are done.

        steps_of_a_row   comparisons per row; small batches run on the calling thread only
        The calling thread works on the first part. Raises the error of a part.
        """
        parts = min(self.threads, int(rows * steps_of_a_row / _SHARE))
        if parts < 2:
            work(0, rows)
            return
        size = -(-rows // (parts * _GROUP)) * _GROUP
        starts = range(0, rows, size)
        others = [
            self._threads().submit(work, start, min(start + size, rows)) for start in starts[1:]
        ]
        try:
            work(0, size)
        finally:
            for other in others:
                other.result()

    def _threads(self) -> ThreadPoolExecutor:
        with self._starting:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self.threads - 1, thread_name_prefix="fil")
            return self._pool

    def close(self) -> None:
        """End the threads. Call it after the last batch."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None
