"""JobAllowance: the limits of the caller of a job (--limit-*, tokens), for the requests in it.

A request of a client beyond a limit is refused. One of a job waits until the limit permits it, and leaves
room for one more: a caller can ask for its job, and cancel it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from core.errors import Exhausted
from core_jobs.job import Job
from frontends.shared.access.caller_names import CallerNames
from frontends.shared.context import context_of
from frontends.shared.usage_meter import UsageMeter

if TYPE_CHECKING:
    from core.server import InferenceServer
    from frontends.shared.access.limits import Allowance

logger = logging.getLogger("core")

_SPARE = 1  # requests that a caller may always send beside its jobs
_LEAST_PAUSE_S, _LONGEST_PAUSE_S = 0.01, 1.0


class _Meter(UsageMeter):
    """Counts the tokens of a request that has waited until its caller had some."""

    __slots__ = ()

    def check(self) -> None:
        """Do nothing: others may have taken the last token since, as requests do that begin together."""


class JobAllowance:
    """Counts the requests of one job in the limits of its caller, in all workers. Event loop only.

    stopping   whether the server stops: a request that waits then waits for the end of its task
    """

    def __init__(self, server: InferenceServer, job: Job, stopping: Callable[[], bool]):
        self._policy = context_of(server).policy
        self._names = CallerNames.of(server)
        self._job = job
        self._stopping = stopping
        self._told = False  # whether the log says that the job waits

    @asynccontextmanager
    async def one(self) -> AsyncIterator[UsageMeter | None]:
        """Wait until the caller may have one more request, and count it for the block.

        Yields what counts its tokens and names its caller; None if nothing needs that.
        """
        allowance = None if self._policy is None else self._policy.allowance_of(self._job.caller)
        slot = -1 if allowance is None else await self._entered(allowance)
        try:
            usage = None if allowance is None else allowance.usage
            number = self._names.number_of_text(self._job.caller) if self._names.wanted else 0
            yield _Meter(usage, None, number) if usage is not None or number else None
        finally:
            if allowance is not None:
                allowance.leave(slot)

    async def _entered(self, allowance: Allowance) -> int:
        """Return the slot in which a request is counted, once all limits permit it."""
        while True:
            if self._stopping():
                await asyncio.Event().wait()  # until the job is released
            try:
                if allowance.usage is not None:
                    allowance.usage.check()
                return allowance.enter(_SPARE)
            except Exhausted as refused:
                self._tell(refused)
                await asyncio.sleep(
                    min(max(refused.retry_after_s, _LEAST_PAUSE_S), _LONGEST_PAUSE_S)
                )

    def _tell(self, refused: Exhausted) -> None:
        if not self._told:
            self._told = True
            logger.info("job %s goes on as its limits permit: %s", self._job.id, refused.message)
