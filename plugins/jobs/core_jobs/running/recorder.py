"""Recorder: writes the results of one job. Results that come while a transaction runs share the next one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from core.errors import CoreError
from core_jobs.job import Job, Result
from core_jobs.store import progress
from core_jobs.store.database import FolderFull
from core_jobs.store.disk import Disk

logger = logging.getLogger("core")

AGAIN_S = 2.0  # after the store could not be written


class TooLarge(Exception):
    """The results of the job exceed --jobs-result-bytes."""


class Recorder:
    """Event loop only.

    owner        this process
    most_bytes   of all results of the job
    recorded     called with each result that is on disk
    """

    def __init__(
        self,
        disk: Disk,
        owner: str,
        job: Job,
        most_bytes: int,
        recorded: Callable[[Job, Result], object],
    ):
        self._disk = disk
        self._owner = owner
        self._job = job
        self._most_bytes = most_bytes
        self._recorded = recorded
        self._bytes = job.result_bytes
        self._waiting: list[tuple[Result, asyncio.Future[None]]] = []
        self._writing: asyncio.Task[None] | None = None
        self._given_up = False  # whether the job ends

    async def put(self, result: Result) -> None:
        """Store a result; return when it is on disk: a full disk is waited for.

        Raises TooLarge and FolderFull.
        """
        if self._bytes + len(result.body) > self._most_bytes:
            raise TooLarge(
                f"its results exceed {self._most_bytes} bytes (--jobs-result-bytes); the result of request "
                f"{result.index} has {len(result.body)}"
            )
        self._bytes += len(result.body)
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((result, stored))
        if self._writing is None:
            self._writing = asyncio.ensure_future(self._write())
        await stored

    async def flush(self) -> None:
        """Wait until nothing is being written; what the disk does not take is given up."""
        self._given_up = True
        if self._writing is not None:
            await asyncio.wait({self._writing})

    async def _write(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                try:
                    await self._record([each for each, _ in batch])
                except Exception as error:
                    for _, stored in batch:
                        if not stored.done():
                            stored.set_exception(error)
                else:
                    for result, stored in batch:
                        self._recorded(self._job, result)
                        if not stored.done():
                            stored.set_result(None)
        finally:
            self._writing = None

    async def _record(self, results: list[Result]) -> None:
        trouble = ""
        while True:
            try:
                await self._disk.run(progress.record, self._owner, self._job.key, results)
                return
            except FolderFull:
                raise
            except CoreError as error:
                if error.message != trouble and not self._given_up:
                    logger.error("job %s waits: %s", self._job.id, error.message)
                trouble = error.message
                if self._given_up:
                    raise
            await asyncio.sleep(AGAIN_S)
