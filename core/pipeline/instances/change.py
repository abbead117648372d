"""Change: replaces instances of a chain that serves, in one step of the event loop.

specs ─► [match_specs] ─► open, warm up ─► commit.  Nothing changes before the commit. After it, the new
instances serve with those that stay; those that leave finish their batches and sequences.
"""

from __future__ import annotations

from core.pipeline.batching.scheduler import Scheduler
from core.pipeline.instances.pool import Pool
from core.pipeline.instances.runner import InstanceRunner


class Change:
    """A prepared change of the instances of one chain. Call `commit` or `abandon`, once.

    Not thread-safe: call from the event loop only.

    opened   instances that are open and do not serve yet
    kept     open instances that stay, passive ones too
    leaving  open instances that the new configuration does not need, or that are broken
    """

    def __init__(
        self,
        pool: Pool,
        scheduler: Scheduler,
        opened: list[InstanceRunner],
        kept: list[InstanceRunner],
        leaving: list[InstanceRunner],
    ):
        self.opened = opened
        self.kept = kept
        self.leaving = leaving
        self._pool = pool
        self._scheduler = scheduler

    def commit(self) -> None:
        """Put the new instances into service, but passive ones. Let the others retire after their work."""
        for runner in self.leaving:
            runner.leaves = True
            if runner.spec.passive:
                self._pool.retire(runner)
        self._pool.admit(self.opened)
        self._scheduler.changed([each for each in self.opened if not each.spec.passive])
        self._scheduler.pump()

    async def abandon(self) -> None:
        """Close the new instances. Those that serve stay."""
        await self._pool.discard(self.opened)
