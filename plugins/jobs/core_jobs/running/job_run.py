"""JobRun: one job while this process runs it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from core.errors import CoreError
from core_jobs.job import DONE, FAILED, Item, Job
from core_jobs.running.answering import Answering, ModelAway
from core_jobs.running.recorder import Recorder, TooLarge
from core_jobs.store import rows
from core_jobs.store.disk import Disk
from core_jobs.store.upkeep import LATE

logger = logging.getLogger("core")

_AHEAD_BYTES = 8 << 20  # of requests that are read from the disk at a time


class JobRun:
    """Sends the requests of a job that have no result, a few at a time. Event loop only.

    concurrency   requests that are at the model, or whose results are being written
    stopping      whether the server stops: no request begins any more
    """

    def __init__(
        self,
        job: Job,
        disk: Disk,
        answering: Answering,
        recorder: Recorder,
        concurrency: int,
        stopping: Callable[[], bool],
    ):
        self.job = job
        self._disk = disk
        self._answering = answering
        self._recorder = recorder
        self._concurrency = concurrency
        self._stopping = stopping
        self._slots = asyncio.Semaphore(concurrency)
        self._tasks: set[asyncio.Task[None]] = set()
        self._outcome: asyncio.Future[tuple[str, str]] = asyncio.get_running_loop().create_future()

    def stop(self, state: str, error: str = "") -> None:
        """End the run: cancel the requests that are at the model. The first call decides."""
        if not self._outcome.done():
            self._outcome.set_result((state, error))

    async def run(self) -> tuple[str, str]:
        """Return the state in which the job ends, and its error."""
        serving = asyncio.ensure_future(self._serve())
        self._tasks.add(serving)
        timer = None
        if self.job.deadline_s is not None:
            left_s = max(0.0, self.job.deadline_s - time.time())
            timer = asyncio.get_running_loop().call_later(left_s, self.stop, FAILED, LATE)
        try:
            return await self._outcome
        finally:
            if timer is not None:
                timer.cancel()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await self._recorder.flush()

    async def _serve(self) -> None:
        try:
            at = -1
            while items := await self._next(at):
                at = items[-1].index
                for item in items:
                    await self._slots.acquire()
                    if self._stopping():
                        return  # the rest waits for the next start
                    task = asyncio.ensure_future(self._one(item))
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)
            for _ in range(self._concurrency):  # all requests have a result
                await self._slots.acquire()
            self.stop(DONE)
        except Exception as error:
            self._fail(error)

    async def _next(self, at: int) -> list[Item]:
        return await self._disk.run(
            rows.requests_after, self.job.key, at, 4 * self._concurrency, _AHEAD_BYTES
        )

    async def _one(self, item: Item) -> None:
        try:
            await self._recorder.put(await self._answering.answer(item))
        except Exception as error:
            self._fail(error)
        finally:
            self._slots.release()

    def _fail(self, error: Exception) -> None:
        if isinstance(error, CoreError | ModelAway | TooLarge):
            self.stop(FAILED, str(error))
            return
        logger.error("job %s has failed", self.job.id, exc_info=error)
        self.stop(FAILED, "unexpected error in the server; its log has the details")
