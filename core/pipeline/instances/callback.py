"""An instance whose executions are started on the loop, and tell their end by a callback.

batcher ─► [CallbackWorker] ─► the instance's begin … done ─► delivery.  For work that is done
elsewhere, such as in another process: neither a thread nor a task waits for it.
"""

from __future__ import annotations

import asyncio
from functools import partial

from core.backend import ModelInstance
from core.errors import Fatal
from core.pipeline.answers.delivery import BatchDelivery
from core.pipeline.instances.worker import InlineWorker, Owner, contained, on_device


class CallbackWorker(InlineWorker):
    """`run` returns when the work is under way.

    Invariants:
    1. It is idle, as the pool sees it, while fewer than `instance.ahead` batches are under way.
    2. With more than one, they are executed in the order in which they were begun, one at a time.
    """

    def __init__(
        self, instance: ModelInstance, loop: asyncio.AbstractEventLoop, owner: Owner, limited: bool
    ):
        super().__init__(instance, loop, owner)
        self._limited = limited  # by a rate limiter, which counts executions: one at a time
        self._under_way = 0
        self._is_idle = True
        self._last_end_ns = 0  # of the computation of the batch before

    def run(self, delivery: BatchDelivery) -> None:
        if self.on_device:
            on_device(delivery, self.instance)
        delivery.batch.start_ns = delivery.terms.clock.now_ns()
        self._is_idle = False
        self._under_way += 1

        try:
            self.instance.begin(delivery.batch, partial(self._done, delivery))
        except BaseException as raised:
            self._done(delivery, contained(raised))
        if self._under_way and not self._limited:
            self._tell_idle(delivery)

    def _done(self, delivery: BatchDelivery, error: BaseException | None) -> None:
        self._under_way -= 1
        batch = delivery.batch
        if batch.start_ns < self._last_end_ns:  # it was begun ahead: until then it waited
            batch.start_ns = self._last_end_ns
        self._last_end_ns = batch.compute_end_ns
        delivery.executed(None, error)
        if isinstance(error, Fatal):
            self.broken = error
            self._is_idle = False  # the pool may have been told that it is
        delivery.release()
        self._tell_idle(delivery)

    def _tell_idle(self, delivery: BatchDelivery) -> None:
        has_room = self._under_way < max(1, self.instance.ahead)
        if not self._is_idle and (has_room or self.broken is not None):
            self._is_idle = True
            self._owner.became_idle(self, delivery)
