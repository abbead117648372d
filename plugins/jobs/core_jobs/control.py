"""The control operations jobs.show, jobs.callers and jobs.cancel: the jobs of all callers, for operators."""

from __future__ import annotations

from typing import Any

from core.control import Area, Changed, change, here
from core.errors import invalid
from core_jobs.http.results import ended_within
from core_jobs.job import STATES
from core_jobs.jobs import Jobs
from core_jobs.store import rows, submitting
from core_jobs.store.submitting import unknown

_MOST_LISTED = 1000
_CANCEL_S = 5.0  # for the owner of a job to end it


class JobsControl(Area, name="jobs"):
    """Shows the jobs of all callers, without their requests and results, and cancels them."""

    def __init__(self, jobs: Jobs):
        self._jobs = jobs

    @here("statistics")
    async def show(
        self,
        caller: str | None = None,
        model: str = "",
        state: str = "",
        limit: int = 100,
        after: str = "",
    ) -> dict[str, Any]:
        """Return the jobs of all callers, the newest first, or those of one caller, model or state."""
        if state and state not in STATES:
            raise invalid(f"state is '{state[:64]}'; expected one of {', '.join(STATES)}")
        if type(limit) is not int or not 1 <= limit <= _MOST_LISTED:
            raise invalid(f"limit is {limit!r}; expected a whole number from 1 to {_MOST_LISTED}")
        disk, before = self._jobs.disk, 0
        if after:
            last = await disk.run(rows.find, None, after)
            if last is None:
                raise unknown(after)
            before = last.key
        wanted = rows.Wanted(caller, model, state)
        found = await disk.run(rows.listed, wanted, before, limit + 1)
        page = found[:limit]
        return {
            "jobs": [{"caller": job.caller, **job.document()} for job in page],
            "after": page[-1].id if len(found) > limit else None,
        }

    @here("statistics")
    async def callers(self) -> list[dict[str, Any]]:
        """Return each caller with the number of its jobs in each state, and the bytes that they take."""
        return await self._jobs.disk.run(rows.callers)

    @change("model-repository", subject="job {job}", otherwise="the job stays as it is")
    async def cancel(self, job: str) -> Changed:
        """Cancel a job of any caller; results that are there stay. An ended job stays as it is."""
        jobs = self._jobs
        found = await jobs.disk.run(submitting.cancel, None, job)
        jobs.runner.cancel(found.key)
        jobs.changes.tell(found.id)
        ended = await ended_within(jobs, found, _CANCEL_S) or found
        return Changed({"caller": ended.caller, **ended.document()})
