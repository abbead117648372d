"""Scheduler: base class of the batchers and the sequence scheduler.

admit ─► [Scheduler] ─► pool.  A new request, an idle instance or a timer calls `pump`; subclasses decide
which batches start.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from core.errors import CoreError, unavailable
from core.native.clock import Clock
from core.native.timer import LoopTimer
from core.pipeline.batching.queue import QueuedRequest
from core.pipeline.endpoint import RequestHandler
from core.pipeline.instances.pool import Pool
from core.pipeline.instances.runner import InstanceRunner
from core.request import InferenceRequest
from core.response import Reply
from core.telemetry.statistics import Statistics


class Scheduler(RequestHandler):
    """The requests of one model version that wait for an instance.

    Not thread-safe: call from the event loop only.

    on_final   called when this scheduler has ended a request with an error instead of running it
    clock_ns   time.monotonic_ns, or the clock of a test
    """

    def __init__(
        self,
        *,
        statistics: Statistics,
        loop: asyncio.AbstractEventLoop,
        pool: Pool,
        on_final: Callable[[], None],
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ):
        self._statistics = statistics
        self._loop = loop
        self._pool = pool
        self._on_final = on_final
        self._clock = Clock(clock_ns)
        self._timer = LoopTimer(loop, self._clock, self.pump)
        self._pumping = False
        pool.connect(self.pump, self.put_back)

    @property
    def pending(self) -> int:
        """Number of requests that wait."""
        raise NotImplementedError

    def pending_by_priority(self) -> dict[int, int]:
        """Return priority level → number of requests that wait; {} without priorities."""
        return {}

    def submit(self, request: InferenceRequest) -> Reply:
        """Take an admitted request. Raise CoreError to refuse it."""
        raise NotImplementedError

    def put_back(self, waiting: QueuedRequest) -> None:
        """Queue a request again that asks for another execution. The instance that ran it is idle next."""
        raise NotImplementedError

    def changed(self, added: list[InstanceRunner]) -> None:
        """React to new instances, and retire the instances that are marked to leave."""
        for runner in [each for each in self._pool.runners if each.leaves]:
            self._pool.retire(runner)

    def end_waiting_sequences(self) -> None:
        """End the sequences that wait for requests. Only sequence schedulers have some."""

    def close(self) -> None:
        """Stop the timer. Call this when no request waits any more."""
        self._timer.close()

    def pump(self) -> None:
        """Start the batches that can start now. If no instance is left, refuse all requests that wait."""
        if self._pumping:  # an inline instance has become idle within `run`: the outer call goes on
            return
        if self._pool.broken is not None:
            self._fail_all(unavailable(f"no instance of the model is left: {self._pool.broken}"))
        self._pumping = True
        try:
            next_time_ns = self._start_batches()
        finally:
            self._pumping = False
        self._timer.set(next_time_ns)

    def _start_batches(self) -> int:
        """Give batches to instances. Return when to call again (ns), or 0 for no timer."""
        raise NotImplementedError

    def _fail_all(self, error: CoreError) -> None:
        """Refuse all waiting requests, because no instance is left."""
        raise NotImplementedError

    def _refuse(self, waiting: QueuedRequest, error: CoreError, reason: str) -> None:
        """Answer a request with `error` after it has left the queue without running. Count `reason`."""
        self._statistics.failed(reason, self._clock.now_ns() - waiting.request.arrival_ns)
        waiting.reply.fail(error)
        self._on_final()
