"""FileCounts: how far each file of a job is, read from the store at a bounded rate."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Any

from core_jobs.job import Job
from core_jobs.store import rows
from core_jobs.store.disk import Disk

_MOST_KEPT = 16  # jobs
_LEAST_AGE_S = 1.0
_SHARE = 20  # of the time of the disk, one part for these counts


@dataclass(frozen=True, slots=True)
class _Counts:
    """Counts of one job.

    of        state and counts of the job when they were read
    until_s   by `time.monotonic`, until when they do for a job that runs
    """

    of: tuple[str, int, int]
    files: list[dict[str, Any]]
    until_s: float


class FileCounts:
    """The files of jobs with the counts of their requests. Event loop only.

    Counting reads a row for each request of the job, on the thread on which all jobs wait. Counts of a job
    that runs are therefore kept for a second, or 20 times as long as they took. Those of an ended one are
    exact.
    """

    def __init__(self, disk: Disk):
        self._disk = disk
        self._kept: dict[int, _Counts] = {}
        self._reading = asyncio.Lock()

    async def files(self, job: Job) -> list[dict[str, Any]]:
        """Return {"file": name, "requests": counts} of each file of a job. Raises CoreError(UNAVAILABLE)."""
        now = (job.state, job.succeeded, job.failed)
        async with self._reading:
            kept = self._kept.get(job.key)
            if kept is not None and (
                kept.of == now or (not job.has_ended and time.monotonic() < kept.until_s)
            ):
                return kept.files
            start_s = time.monotonic()
            files = await self._disk.run(rows.files_of, job.key)
            end_s = time.monotonic()
            age_s = max(_LEAST_AGE_S, _SHARE * (end_s - start_s))
            self._kept.pop(job.key, None)
            self._kept[job.key] = _Counts(now, files, end_s + age_s)
            if len(self._kept) > _MOST_KEPT:
                del self._kept[next(iter(self._kept))]
            return files
