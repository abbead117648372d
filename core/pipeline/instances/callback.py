"""CallbackRunner: starts executions on the event loop; a callback reports their end.

batcher ─► [CallbackRunner] ─► the instance's begin … done ─► delivery.  For work that another process or
device does: neither a thread nor a task waits for it.
"""

from __future__ import annotations

import asyncio
from functools import partial

from core.backend import ModelInstance
from core.errors import Fatal
from core.pipeline.answers.delivery import BatchDelivery
from core.pipeline.instances.runner import InlineRunner, RunnerOwner, contained, on_device


class CallbackRunner(InlineRunner):
    """Runner whose `run` returns once the execution has started. Invariants:

    1. It is idle to the pool while fewer than `instance.ahead` batches run; with a rate limit, if none runs.
    2. Batches execute one at a time, in the order in which they were started.
    """

    def __init__(
        self,
        instance: ModelInstance,
        loop: asyncio.AbstractEventLoop,
        owner: RunnerOwner,
        limited: bool,
    ):
        super().__init__(instance, loop, owner)
        self._limited = limited  # the rate limiter counts executions, so they run one at a time
        self._running = 0
        self._is_idle = True
        self._last_end_ns = 0  # when the computation of the previous batch ended

    def run(self, delivery: BatchDelivery) -> None:
        if self.on_device:
            on_device(delivery, self.instance)
        delivery.batch.start_ns = delivery.context.clock.now_ns()
        self._is_idle = False
        self._running += 1

        try:
            self.instance.begin(delivery.batch, partial(self._done, delivery))
        except BaseException as raised:
            self._done(delivery, contained(raised))
        if self._running and not self._limited:
            self._report_idle(delivery)

    def _done(self, delivery: BatchDelivery, error: BaseException | None) -> None:
        self._running -= 1
        batch = delivery.batch
        if batch.start_ns < self._last_end_ns:  # it waited for the previous batch until then
            batch.start_ns = self._last_end_ns
        self._last_end_ns = batch.compute_end_ns
        delivery.executed(None, error)
        if isinstance(error, Fatal):
            self.broken = error
            self._is_idle = False  # report the broken runner even if the pool sees it as idle
        delivery.release()
        self._report_idle(delivery)

    def _report_idle(self, delivery: BatchDelivery) -> None:
        has_room = self._running < max(1, self.instance.ahead)
        if not self._is_idle and (has_room or self.broken is not None):
            self._is_idle = True
            self._owner.became_idle(self, delivery)
