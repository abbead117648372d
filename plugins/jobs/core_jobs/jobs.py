"""Jobs: the jobs of one server, in this process.

routes ─► [Jobs] ─► store on disk ◄─ Runner ─► models
             └─ every second: deadlines, expiry, jobs of processes that have ended
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import CoreError
from core_jobs.options import JobsOptions
from core_jobs.running.changes import Changes
from core_jobs.running.ownership import FolderLock, Owner
from core_jobs.running.reading import JobReader
from core_jobs.running.runner import Runner
from core_jobs.store import progress, upkeep
from core_jobs.store.database import Database
from core_jobs.store.disk import Disk
from core_jobs.store.upkeep import Numbers

if TYPE_CHECKING:
    from core.server import InferenceServer

logger = logging.getLogger("core")

_LOOK_S = 1.0  # between two turns of the upkeep
_POLL_S = 0.2  # between two looks at what other processes have changed


class Jobs:
    """Event loop only. Raises CoreError(UNAVAILABLE) for a folder that cannot be used.

    changes   wakes calls that wait for a job
    numbers   for metrics, at most a second old
    """

    def __init__(self, server: InferenceServer):
        self.options = JobsOptions.of(server.options)
        folder = Path(self.options.jobs_folder)
        self._shared = server.options.workers > 1
        # With workers, their supervisor has locked the folder.
        self._lock = None if self._shared else FolderLock(folder)
        self._owner = Owner(folder)
        database = Database(folder, self.options.jobs_max_bytes)
        self.disk = Disk(database)
        self.changes = Changes()
        self.reader = JobReader(server)
        self.runner = Runner(server, self.disk, self._owner.name, self.reader, self.changes)
        self.numbers = Numbers()
        self._seen = database.changes()
        self._upkeep = asyncio.ensure_future(self._keep())

    @staticmethod
    def of(server: InferenceServer) -> Jobs:
        """Return the jobs of a server: the same object at every call."""
        return server.shared(Jobs)

    def end_waits(self) -> None:
        """Let calls that wait for a job end, because the server begins to stop."""
        self.changes.end()

    async def close(self) -> None:
        """Stop the jobs of this process. They go on at the next start, or in another process."""
        self.changes.end()
        self._upkeep.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._upkeep
        await self.runner.close()
        with contextlib.suppress(CoreError):  # the next start does it
            await self.disk.run(progress.release, [self._owner.name])
        await self.disk.close()
        self._owner.close()
        if self._lock is not None:
            self._lock.close()

    # upkeep -------------------------------------------------------------------------

    async def _keep(self) -> None:
        """Do what time and other processes require, until the task is cancelled."""
        loop = asyncio.get_running_loop()
        due_s = loop.time()
        trouble = ""
        while True:
            try:
                if loop.time() >= due_s:
                    due_s = loop.time() + _LOOK_S
                    await self._look()
                elif self._shared:
                    await self._notice()
                trouble = ""
            except CoreError as error:
                if error.message != trouble:
                    logger.error("the upkeep of jobs waits: %s", error.message)
                trouble = error.message
            except Exception:
                logger.exception("the upkeep of jobs has failed")
            busy = self._shared and (self.changes.awaited or self.runner.is_busy)
            await asyncio.sleep(_POLL_S if busy else max(0.0, due_s - loop.time()))

    async def _look(self) -> None:
        if await self.disk.run(upkeep.expire):
            self.changes.tell_all()
        owners = await self.disk.run(progress.owners)
        if gone := await asyncio.to_thread(self._owner.ended, owners):
            count = await self.disk.run(progress.release, gone)
            self._owner.forget(gone)
            self.changes.tell_all()  # cancelled ones have ended
            if count:
                logger.info("%d jobs go on that another process or the last start has begun", count)
        self.numbers = await self.disk.run(upkeep.numbers)
        if self._shared:
            await self._notice()
        self.runner.look()

    async def _notice(self) -> None:
        """Act on what other processes have changed in the store."""
        found = await self.disk.run(Database.changes)
        if found == self._seen:
            return
        self.changes.tell_all()
        for key in await self.disk.run(progress.cancelled_of, self._owner.name):
            self.runner.cancel(key)
        self._seen = found  # at the end: after an error the next turn looks again
