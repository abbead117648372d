"""Runner: claims jobs for this process and runs them.

store ─► [claim] ─► JobRun: requests ─► models ─► results ─► store ─► [finish]
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import TYPE_CHECKING

from core.errors import CoreError
from core_jobs.job import CANCELLED, QUEUED, Job, Result
from core_jobs.options import JobsOptions
from core_jobs.running.answering import Answering
from core_jobs.running.changes import Changes
from core_jobs.running.job_run import JobRun
from core_jobs.running.reading import JobReader
from core_jobs.running.recorder import AGAIN_S, Recorder
from core_jobs.store import progress
from core_jobs.store.disk import Disk

if TYPE_CHECKING:
    from core.server import InferenceServer

logger = logging.getLogger("core")


class Runner:
    """The jobs that this process runs. Event loop only.

    owner    name of this process in the store
    counts   requests by outcome: succeeded, failed, retried
    """

    def __init__(
        self,
        server: InferenceServer,
        disk: Disk,
        owner: str,
        reader: JobReader,
        changes: Changes,
    ):
        self.counts: Counter[str] = Counter()
        self._server = server
        self._disk = disk
        self._owner = owner
        self._reader = reader
        self._changes = changes
        self._options = JobsOptions.of(server.options)
        self._runs: dict[int, JobRun] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._claiming: asyncio.Task[None] | None = None
        self._again = False  # whether to claim once more
        self._closing = False

    @property
    def is_busy(self) -> bool:
        """Whether this process runs a job."""
        return bool(self._runs)

    def look(self) -> None:
        """Claim jobs that wait, if there is room for them."""
        self._again = True
        if self._claiming is None and not self._stopping():
            self._claiming = asyncio.ensure_future(self._claim())

    def cancel(self, key: int) -> None:
        """End a job that this process runs, because its caller wants no more of it."""
        if (run := self._runs.get(key)) is not None:
            run.stop(CANCELLED)

    async def close(self) -> None:
        """Stop: results that are there are written, requests without a result wait for the next start."""
        self._closing = True
        for run in self._runs.values():
            run.stop(QUEUED)
        if self._claiming is not None:
            await asyncio.wait({self._claiming})
        waiting = set(self._tasks)
        if waiting:
            _, late = await asyncio.wait(waiting, timeout=10)
            for task in late:
                task.cancel()

    def _stopping(self) -> bool:
        """Return whether the server stops: its models finish what they have, and get nothing new."""
        return self._closing or self._changes.ended or self._server.control.health.exiting

    async def _claim(self) -> None:
        try:
            while self._again and not self._stopping():
                self._again = False
                job = await self._disk.run(progress.claim, self._owner, self._options.jobs_running)
                if job is not None:
                    self._again = True
                    self._begin(job)
        except CoreError as error:
            logger.error("jobs wait: %s", error.message)
        finally:
            self._claiming = None

    def _begin(self, job: Job) -> None:
        self._changes.tell(job.id)
        if self._stopping():  # the job is released with the others of this process
            return
        # At once: a cancellation, or a stop, may come before the task begins.
        run = self._runs[job.key] = self._run_of(job)
        if job.cancelling:
            run.stop(CANCELLED)
        task = asyncio.ensure_future(self._run(run))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _run_of(self, job: Job) -> JobRun:
        options = self._options
        answering = Answering(
            self._server,
            self._reader,
            job,
            options.jobs_patience_secs,
            self._retried,
            self._stopping,
        )
        recorder = Recorder(self._disk, self._owner, job, options.jobs_result_bytes, self._recorded)
        return JobRun(
            job, self._disk, answering, recorder, options.jobs_concurrency, self._stopping
        )

    async def _run(self, run: JobRun) -> None:
        job = run.job
        try:
            state, error = await run.run()
        finally:
            del self._runs[job.key]
        if state != QUEUED:
            await self._finish(job, state, error)
        self.look()

    def _retried(self) -> None:
        self.counts["retried"] += 1

    def _recorded(self, job: Job, result: Result) -> None:
        self.counts["succeeded" if result.is_success else "failed"] += 1
        self._changes.tell(job.id)

    async def _finish(self, job: Job, state: str, error: str) -> None:
        """Write the end of a job, as soon as the store can be written."""
        before = ""
        while True:
            try:
                ended = await self._disk.run(progress.finish, self._owner, job.key, state, error)
                break
            except CoreError as trouble:
                if trouble.message != before:
                    logger.error("job %s cannot end yet: %s", job.id, trouble.message)
                before = trouble.message
                if self._closing:
                    return
                await asyncio.sleep(AGAIN_S)
        if ended is not None:
            _log_end(ended)
        self._changes.tell(job.id)


def _log_end(job: Job) -> None:
    took_s = (job.ended_s or 0.0) - (job.started_s or 0.0)
    logger.info(
        "job %s is %s after %.1f s: %d of %d requests succeeded, %d failed%s",
        job.id,
        job.state,
        took_s,
        job.succeeded,
        job.total,
        job.failed,
        f": {job.error}" if job.error else "",
    )
