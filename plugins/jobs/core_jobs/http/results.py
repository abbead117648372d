"""ResultLines: the results of a batch as lines of JSON, in the order of its requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import orjson

from core.errors import CoreError
from core_jobs.job import Job, Result
from core_jobs.jobs import Jobs
from core_jobs.store import rows

_PART_BYTES = 256 << 10


class ResultLines:
    """The rest of a response (frontends.http.message.Parts). Event loop only.

    wanted   indexes of the results; those of all others are left out
    follows  whether to wait for results that are not there yet, until the job has ended
    """

    def __init__(self, jobs: Jobs, job: Job, wanted: range, *, follows: bool):
        self._jobs = jobs
        self._job = job
        self._next = wanted.start
        self._end = wanted.stop
        self._follows = follows
        self._ended = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            change = self._jobs.changes.next(self._job)
            try:
                part, complete = await self._part()
                if part:
                    yield part
                elif complete:
                    return
                else:
                    await change
            finally:
                self._jobs.changes.drop(self._job, change)

    async def aclose(self) -> None:
        """Send no more."""
        self._ended = True

    def end(self, error: CoreError) -> None:
        """Send no more: the client sees that lines are missing, because the body has no end."""
        self._ended = True
        self._jobs.changes.tell(self._job.id)

    async def _part(self) -> tuple[bytes, bool]:
        """Return the next lines, and whether those are the last if there are none.

        Raises ConnectionError if the rest does not come: the client sees a body that has no end.
        """
        if self._ended or (self._follows and self._jobs.changes.ended):
            raise ConnectionError("the server stops before the job has ended")
        if self._next >= self._end:
            return b"", True
        job = None
        if self._follows:
            # Before the results: a job that has ended then has no more of them.
            job = await self._find()
        found = await self._jobs.disk.run(
            rows.results_after, self._job.key, self._next - 1, _PART_BYTES
        )
        found = [each for each in found if each.index < self._end]
        has_ended = not self._follows or job is None or job.has_ended
        if not has_ended:
            found = self._without_gaps(found)
        if found:
            self._next = found[-1].index + 1
        elif has_ended and await self._find() is None:
            raise ConnectionError("the job was deleted")
        return b"".join(map(line_of, found)), has_ended

    async def _find(self) -> Job | None:
        return await self._jobs.disk.run(rows.find, self._job.caller, self._job.id)

    def _without_gaps(self, found: list[Result]) -> list[Result]:
        """Return the first results up to one that is missing still."""
        for at, each in enumerate(found):
            if each.index != self._next + at:
                return found[:at]
        return found


def line_of(result: Result) -> bytes:
    """Return the line of one result."""
    source = b'"source":%b,' % orjson.dumps(result.source) if result.source else b""
    return b'{"index":%d,%b"status":%d,"response":%b}\n' % (
        result.index,
        source,
        result.status,
        result.body,
    )


async def ended_within(jobs: Jobs, job: Job, wait_s: float) -> Job | None:
    """Return a job as soon as it has ended, or as it is after `wait_s`; None if it was deleted meanwhile."""
    loop = asyncio.get_running_loop()
    end_s = loop.time() + wait_s
    found: Job | None = job
    while found is not None and not found.has_ended:
        change = jobs.changes.next(job)
        try:
            # The job may have ended between the look before and the call of `next`.
            found = await jobs.disk.run(rows.find, job.caller, job.id)
            left_s = end_s - loop.time()
            if found is None or found.has_ended or left_s <= 0 or jobs.changes.ended:
                break
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(change, left_s)
        finally:
            jobs.changes.drop(job, change)
    return found
