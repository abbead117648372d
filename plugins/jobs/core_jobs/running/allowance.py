"""JobAllowance: the limits of the caller of a job (--limit-*, tokens), for the requests in it.

A request of a client beyond a limit is refused. One of a job waits until the limit permits it, and leaves
room for one more: a caller can ask for its job, and cancel it. The jobs of one caller take turns.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from core.errors import Exhausted
from core_jobs.job import Job
from core_jobs.running.caller_turns import CallerTurns
from frontends.shared.access.caller_names import CallerNames
from frontends.shared.context import context_of
from frontends.shared.usage_meter import UsageMeter

if TYPE_CHECKING:
    from core.server import InferenceServer
    from frontends.shared.access.limits import Allowance

logger = logging.getLogger("core")

_SPARE = 1  # requests that a caller may always send beside its jobs
_LEAST_PAUSE_S, _LONGEST_PAUSE_S = 0.01, 1.0
# Seconds of each wait that count as patience. With 0, a job with a low limit would wait for ever for a model.
_MOST_COUNTED_S = 2.0


class _Meter(UsageMeter):
    """Counts the tokens of a request that has waited until its caller had some."""

    __slots__ = ()

    def check(self) -> None:
        """Do nothing: others may have taken the last token since, as requests do that begin together."""


class JobAllowance:
    """Counts the requests of one job in the limits of its caller, in all workers. Event loop only.

    Requests begin in the order of their calls of `one`. If several jobs of the caller wait in this process,
    each of them begins one request in turn.

    stopping    returns whether the server stops; then no request begins, and those that wait are cancelled
    excused_s   seconds that the job has waited for limits and that do not count as patience
    """

    def __init__(self, server: InferenceServer, job: Job, stopping: Callable[[], bool]):
        self._policy = context_of(server).policy
        self._names = CallerNames.of(server)
        self._job = job
        self._stopping = stopping
        self._told = False  # whether the log says that the job waits
        self._turn = asyncio.Lock()  # held by the request of this job that begins next
        self._turn_of_caller = CallerTurns.of(server).turn(job.caller)
        self.excused_s = 0.0

    @asynccontextmanager
    async def one(self) -> AsyncIterator[UsageMeter | None]:
        """Wait until the caller may have one more request, and count it for the block.

        Yields what counts its tokens and names its caller; None if nothing needs that.
        """
        allowance = None if self._policy is None else self._policy.allowance_of(self._job.caller)
        slot = -1 if allowance is None else await self._in_turn(allowance)
        try:
            usage = None if allowance is None else allowance.usage
            number = self._names.number_of_text(self._job.caller) if self._names.wanted else 0
            yield _Meter(usage, None, number) if usage is not None or number else None
        finally:
            if allowance is not None:
                allowance.leave(slot)
                self._turn_of_caller.again.set()

    async def _in_turn(self, allowance: Allowance) -> int:
        """Return the slot of a request, after those that came before it have theirs."""
        async with self._turn:
            begun_s = time.monotonic()
            async with self._turn_of_caller.lock:
                slot = await self._entered(allowance)
            self.excused_s += max(0.0, time.monotonic() - begun_s - _MOST_COUNTED_S)
            return slot

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
                await self._pause(refused.retry_after_s)

    async def _pause(self, wanted_s: float) -> None:
        """Wait until a request of a job has left, at most for a time: others share the caller's limits."""
        pause_s = min(max(wanted_s, _LEAST_PAUSE_S), _LONGEST_PAUSE_S)
        again = self._turn_of_caller.again
        again.clear()
        # Not wait_for: before Python 3.12 it loses a cancellation that comes together with the event.
        timer = asyncio.get_running_loop().call_later(pause_s, again.set)
        try:
            await again.wait()
        finally:
            timer.cancel()

    def _tell(self, refused: Exhausted) -> None:
        if not self._told:
            self._told = True
            logger.info("job %s goes on as its limits permit: %s", self._job.id, refused.message)
