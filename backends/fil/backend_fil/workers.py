"""Threads that share the rows of a large batch.

instance ─► [workers] ─► native.forest, without the GIL.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

_MOST = 8
# Comparisons below which a thread is not worth waking: some milliseconds of a core.
_SHARE = 2_000_000
_GROUP = 8  # rows that walk together


def threads_by_default(cores: frozenset[int]) -> int:
    """One for each core that instances may use but one, which is the server's; at most eight.

    cores   of the host policy, empty for all of the process
    """
    if cores:
        allowed = len(cores)
    elif hasattr(os, "sched_getaffinity"):
        allowed = len(os.sched_getaffinity(0)) - 1
    else:
        allowed = (os.cpu_count() or 1) - 1
    return max(1, min(_MOST, allowed))


class Workers:
    """Threads of one model, started when a batch is the first that is worth it. Any thread may ask."""

    def __init__(self, threads: int):
        self.threads = threads
        self._pool: ThreadPoolExecutor | None = None
        self._starting = Lock()

    def share(self, rows: int, steps_of_a_row: float, work: Callable[[int, int], None]) -> None:
        """Call work(start, stop) for parts that are all `rows` together; return when all are done.

        The first part is the caller's own. Raises what one of them raises.
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
        """End the threads. After the last batch."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None
