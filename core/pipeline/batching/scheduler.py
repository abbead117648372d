"""Scheduler: what the batcher and the sequence scheduler share.

admit ─► [Scheduler] ─► pool.  When something may be able to start (a new request, an idle instance, a
time that has come), `pump` is called; the kinds of scheduler say what starts.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from core.errors import CoreError, unavailable
from core.native.alarm import Alarm
from core.native.clock import Clock
from core.pipeline.batching.queue import Waiting
from core.pipeline.instances.pool import Pool
from core.pipeline.instances.worker import Worker
from core.pipeline.intake import Stage
from core.request import InferenceRequest
from core.response import Reply
from core.telemetry.statistics import Statistics


class Scheduler(Stage):
    """The requests of one model version that wait for an instance. Loop thread only.

    on_final   told when a request that never ran has got its last answer
    clock_ns   time.monotonic_ns, or a test's clock
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
        self._alarm = Alarm(loop, self._clock, self.pump)
        self._pumping = False

    @property
    def pending(self) -> int:
        """Requests that wait."""
        raise NotImplementedError

    def pending_by_priority(self) -> dict[int, int]:
        """The same by level; empty for a model without priorities."""
        return {}

    def ask(self, request: InferenceRequest) -> Reply:
        """Let an admitted request wait. Raises CoreError for one that may not."""
        raise NotImplementedError

    def put_back(self, waiting: Waiting) -> None:
        """A request asks for another execution. Its instance tells soon that it is idle."""
        raise NotImplementedError

    def changed(self, added: list[Worker]) -> None:
        """Instances serve from now on, and those of the pool that are marked so shall leave."""
        for worker in [each for each in self._pool.workers if each.leaves]:
            self._pool.retire(worker)

    def nothing_follows(self) -> None:
        """No other request comes, from nobody: what is kept for one may go. A second call does nothing."""

    def close(self) -> None:
        """Stop looking at the clock; nothing waits any more."""
        self._alarm.close()

    def pump(self) -> None:
        """Start whatever can start now."""
        if self._pumping:  # an inline instance became idle again within run: the loop below goes on
            return
        if self._pool.broken is not None:
            self._fail_all(unavailable(f"no instance of the model is left: {self._pool.broken}"))
        self._pumping = True
        try:
            look_again_ns = self._start_batches()
        finally:
            self._pumping = False
        self._alarm.set(look_again_ns)

    def _start_batches(self) -> int:
        """Give batches to instances; when to look again (ns, 0 for not before something happens)."""
        raise NotImplementedError

    def _fail_all(self, error: CoreError) -> None:
        """Refuse everything that waits: no instance is left."""
        raise NotImplementedError

    def _refuse(self, waiting: Waiting, error: CoreError, reason: str) -> None:
        """Answer a request that has left the queue without an execution."""
        self._statistics.failed(reason, self._clock.now_ns() - waiting.request.arrival_ns)
        waiting.reply.fail(error)
        self._on_final()
