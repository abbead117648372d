"""An instance that runs on its thread or on the loop, whichever its executions suit.

batcher ─► [AutoWorker] ─► the backend's execute ─► delivery.  A hand-over to a thread and back takes
some tens of microseconds, and on virtual machines whose processors sleep some hundreds; an execution
shorter than that is better done on the loop, a longer one would keep everybody else waiting. Which it
is shows in the times measured, of both.
"""

from __future__ import annotations

import asyncio
import os

from core.backend import ModelInstance
from core.pipeline.answers.delivery import BatchDelivery
from core.pipeline.instances.worker import Owner, ThreadWorker

# With one processor a thread wins nothing: the scheduler of the operating system, too, gives the loop
# its turn only after a slice of some milliseconds. So the loop may be held as long.
ONE_PROCESSOR = len(os.sched_getaffinity(0)) == 1
SHORT_NS = 2_000_000 if ONE_PROCESSOR else 60_000
# One such execution ends the stay on the loop.
TOO_LONG_NS = 8_000_000 if ONE_PROCESSOR else 2_000_000
# An execution from this time on has a turn of the loop for itself. What is written in a turn leaves at its
# end, and the answers to a burst of requests would all leave after the last execution.
WHOLE_TURN_NS = 100_000
MOST_SHORT_NS = 200_000  # that a hand-over may take and still be worth it, for the others' sake
TRIAL = 16  # executions on the thread before the first look
LONGEST_TRIAL = 4096


class AutoWorker(ThreadWorker):
    """Loop thread, as all workers; execute is called on the instance's thread or on the loop.

    Invariants:
    1. On the thread the shortest of the last executions and of the last hand-overs counts: the others
       also show what else the machine had to do. On the loop a smoothed time counts.
    2. Who comes back from the loop stays on the thread twice as long as the last time.
    """

    def __init__(self, instance: ModelInstance, loop: asyncio.AbstractEventLoop, owner: Owner):
        super().__init__(instance, loop, owner)
        self.on_loop = False
        self._trial = TRIAL
        self._seen = 0
        self._shortest_ns = 0
        self._crossing_ns = 0
        self._smoothed_ns = 0
        self._short_ns = SHORT_NS
        self._given_ns = 0

    def run(self, delivery: BatchDelivery) -> None:
        if self.on_loop:
            if self._smoothed_ns < WHOLE_TURN_NS:
                self._run_here(delivery)
            else:
                self._loop.call_soon(self._run_here, delivery)
        else:
            self._given_ns = delivery.terms.clock.now_ns()
            ThreadWorker.run(self, delivery)

    def _run_here(self, delivery: BatchDelivery) -> None:
        self._ended(delivery, self.execute(delivery))

    def _ended(self, delivery: BatchDelivery, error: BaseException | None) -> None:
        batch = delivery.batch
        took_ns = batch.end_ns - batch.start_ns
        if self.on_loop:
            self._learn_on_loop(took_ns)
        else:
            away_ns = delivery.terms.clock.now_ns() - self._given_ns
            self._learn_on_thread(took_ns, away_ns - took_ns)
        ThreadWorker._ended(self, delivery, error)

    def _learn_on_loop(self, took_ns: int) -> None:
        self._smoothed_ns += (took_ns - self._smoothed_ns) // 8
        if took_ns > TOO_LONG_NS or self._smoothed_ns > 2 * self._short_ns:
            self.on_loop = False
            self._trial = min(2 * self._trial, LONGEST_TRIAL)

    def _learn_on_thread(self, took_ns: int, crossing_ns: int) -> None:
        """crossing_ns   to the thread and back"""
        first = self._seen == 0
        if first or took_ns < self._shortest_ns:
            self._shortest_ns = took_ns
        if first or crossing_ns < self._crossing_ns:
            self._crossing_ns = crossing_ns
        self._seen += 1
        if self._seen < self._trial:
            return
        self._seen = 0
        self._short_ns = max(SHORT_NS, min(self._crossing_ns, MOST_SHORT_NS))
        if self._shortest_ns < self._short_ns and self.instance.placement == "auto":
            self.on_loop = True
            self._smoothed_ns = self._shortest_ns
