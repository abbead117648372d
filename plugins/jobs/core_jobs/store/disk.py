"""Disk: runs functions of a Database on one thread, so that the event loop never waits for the disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Concatenate, ParamSpec, TypeVar

from core_jobs.store.database import Database

P = ParamSpec("P")
T = TypeVar("T")


class Disk:
    """The thread of one Database. Not thread-safe: call from the event loop only."""

    def __init__(self, database: Database):
        self._database = database
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="core-jobs")

    async def run(
        self, function: Callable[Concatenate[Database, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Return function(database, *args, **kwargs). Functions run in the order of the calls.

        A function that has begun runs to its end, also if the coroutine is cancelled.
        """
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self._thread, lambda: function(self._database, *args, **kwargs)
        )

    async def close(self) -> None:
        """Close the database after the functions that were called before."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._database.close)
        self._thread.shutdown()
