"""An instance that runs on its thread or on the loop, whichever its executions suit.

batcher ─► [AutoWorker] ─► the backend's execute ─► delivery.  A hand-over to a thread and back costs
some tens of microseconds; an execution shorter than that is better done on the loop, a longer one
would keep everybody else waiting. Which it is shows in the times measured.
"""

from __future__ import annotations

import asyncio
import os

from core.backend import ModelInstance
from core.pipeline.answers.delivery import BatchDelivery
from core.pipeline.instances.worker import Owner, ThreadWorker

# With one processor a thread wins nothing: the scheduler of the operating system, too, gives the loop its turn
# only after a slice of some milliseconds. So the loop may be held as long.
ONE_PROCESSOR = len(os.sched_getaffinity(0)) == 1
SHORT_NS = 2_000_000 if ONE_PROCESSOR else 60_000
TOO_LONG_NS = 8_000_000 if ONE_PROCESSOR else 2_000_000  # one such execution ends the stay on the loop
TRIAL = 16  # executions on the thread before the first look
LONGEST_TRIAL = 4096


class AutoWorker(ThreadWorker):
    """Loop thread, as all workers; execute is called on the instance's thread or on the loop.

    Invariants:
    1. On the thread the shortest of the last executions counts: the others also show what else the
       machine had to do. On the loop a smoothed time counts.
    2. Who comes back from the loop stays on the thread twice as long as the last time.
    """

    def __init__(self, instance: ModelInstance, loop: asyncio.AbstractEventLoop, owner: Owner):
        super().__init__(instance, loop, owner)
        self.on_loop = False
        self._trial = TRIAL
        self._seen = 0
        self._shortest_ns = 0
        self._smoothed_ns = 0

    def run(self, delivery: BatchDelivery) -> None:
        if self.on_loop:
            self._ended(delivery, self.execute(delivery))
        else:
            ThreadWorker.run(self, delivery)

    def _ended(self, delivery: BatchDelivery, error: BaseException | None) -> None:
        batch = delivery.batch
        self._learn(batch.end_ns - batch.start_ns)
        ThreadWorker._ended(self, delivery, error)

    def _learn(self, took_ns: int) -> None:
        if self.on_loop:
            self._smoothed_ns += (took_ns - self._smoothed_ns) // 8
            if took_ns > TOO_LONG_NS or self._smoothed_ns > 2 * SHORT_NS:
                self.on_loop = False
                self._seen = 0
                self._trial = min(2 * self._trial, LONGEST_TRIAL)
            return
        if not self._seen or took_ns < self._shortest_ns:
            self._shortest_ns = took_ns
        self._seen += 1
        if self._seen >= self._trial:
            self._seen = 0
            if self._shortest_ns < SHORT_NS and self.instance.placement == "auto":
                self.on_loop = True
                self._smoothed_ns = self._shortest_ns
