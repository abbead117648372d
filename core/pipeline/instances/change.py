"""Change: other instances for a chain that serves, in one step of the loop.

seats ─► [matched] ─► open, warm up ─► commit.  Until the commit everything is as it was; from then on the
new instances serve with those that stay, and those that leave finish what they have.
"""

from __future__ import annotations

from core.pipeline.batching.scheduler import Scheduler
from core.pipeline.instances.pool import Pool
from core.pipeline.instances.worker import Worker


class Change:
    """Call either `commit` or `abandon`, once. Loop thread only.

    opened   instances that are open and do not serve yet
    kept     those that serve and stay
    leaving  those that serve and are not wanted any more
    """

    def __init__(
        self,
        pool: Pool,
        scheduler: Scheduler,
        opened: list[Worker],
        kept: list[Worker],
        leaving: list[Worker],
    ):
        self.opened = opened
        self.kept = kept
        self.leaving = leaving
        self._pool = pool
        self._scheduler = scheduler

    def commit(self) -> None:
        """The new instances serve; the others leave when they have answered what they hold."""
        for worker in self.leaving:
            worker.leaves = True
            if worker.seat.passive:
                self._pool.retire(worker)
        self._pool.admit(self.opened)
        self._scheduler.changed([each for each in self.opened if not each.seat.passive])
        self._scheduler.pump()

    async def abandon(self) -> None:
        """Close the new instances; those that serve go on."""
        await self._pool.discard(self.opened)
