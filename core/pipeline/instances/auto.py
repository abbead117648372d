"""AutoRunner: runs an instance on its thread or on the event loop, depending on how long executions take.

batcher ─► [AutoRunner] ─► the backend's execute ─► delivery.  A switch to a thread and back takes tens of
microseconds, hundreds on virtual machines whose processors sleep. A shorter execution is cheaper on the loop;
a longer one would block all other requests. The runner measures both times.
"""

from __future__ import annotations

import asyncio

from core.backend import ModelInstance
from core.pipeline.answers.delivery import BatchDelivery
from core.pipeline.instances.runner import RunnerOwner, ThreadRunner
from core.system import platform

# With one processor a thread gains nothing: the operating system also runs the loop only after a time slice
# of some milliseconds. So an execution may block the loop as long.
ONE_PROCESSOR = len(platform.cores()) == 1
SHORT_NS = 2_000_000 if ONE_PROCESSOR else 60_000
# One execution of this length moves the instance to its thread.
TOO_LONG_NS = 8_000_000 if ONE_PROCESSOR else 2_000_000
# An execution of this length gets an iteration of the loop for itself. Sockets are written at the end of an
# iteration, so without this the responses to a burst of requests would all leave after the last execution.
WHOLE_TURN_NS = 100_000
MOST_SHORT_NS = (
    200_000  # an execution longer than this stays on the thread, however slow the switch is
)
TRIAL = 16  # executions on the thread before the first decision
LONGEST_TRIAL = 4096


class AutoRunner(ThreadRunner):
    """Runner that calls execute on the instance's thread or on the event loop. Invariants:

    1. On the thread, the minimum of the last executions and of the last switches decides, since longer times
       also contain other work of the machine. On the loop, a moving average decides.
    2. After a return from the loop, it stays on the thread for twice as many executions, up to LONGEST_TRIAL.
    """

    def __init__(
        self, instance: ModelInstance, loop: asyncio.AbstractEventLoop, owner: RunnerOwner
    ):
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
            self._given_ns = delivery.context.clock.now_ns()
            ThreadRunner.run(self, delivery)

    def _run_here(self, delivery: BatchDelivery) -> None:
        self._ended(delivery, self.execute(delivery))

    def _ended(self, delivery: BatchDelivery, error: BaseException | None) -> None:
        batch = delivery.batch
        took_ns = batch.end_ns - batch.start_ns
        if self.on_loop:
            self._learn_on_loop(took_ns)
        else:
            away_ns = delivery.context.clock.now_ns() - self._given_ns
            self._learn_on_thread(took_ns, away_ns - took_ns)
        ThreadRunner._ended(self, delivery, error)

    def _learn_on_loop(self, took_ns: int) -> None:
        self._smoothed_ns += (took_ns - self._smoothed_ns) // 8
        if took_ns > TOO_LONG_NS or self._smoothed_ns > 2 * self._short_ns:
            self.on_loop = False
            self._trial = min(2 * self._trial, LONGEST_TRIAL)

    def _learn_on_thread(self, took_ns: int, crossing_ns: int) -> None:
        """Note an execution's times. After `_trial` of them, go over to the loop if the shortest is short.

        crossing_ns   time of the switch to the thread and back
        """
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
