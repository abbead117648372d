"""Refresher: keeps the account and the budget true after the loads.

a load has ended, or EVERY_S have passed ─► processes of models are read anew ─► Reservations.unload_excess
"""

from __future__ import annotations

import asyncio
import logging
from contextvars import Context

from core_memory_budget.account import Account, shown
from core_memory_budget.measuring import Measuring
from core_memory_budget.reservations import Reservations
from core_memory_budget.sizes import HOST

logger = logging.getLogger("core")

EVERY_S = 5.0


class Refresher:
    """Looks after each load, then again while a model has processes, or more is loaded than the budget holds.

    Event loop only.
    """

    def __init__(
        self,
        account: Account,
        measuring: Measuring,
        reservations: Reservations,
        loop: asyncio.AbstractEventLoop,
    ):
        self._account = account
        self._measuring = measuring
        self._reservations = reservations
        self._loop = loop
        self._loaded = asyncio.Event()  # since the last look
        self._task: asyncio.Task[None] | None = None

    def loaded(self) -> None:
        """Note that a load has ended: it may have taken more than was reserved."""
        self._loaded.set()
        if self._task is None:
            # Not in the context of the load: that one lasts longer than the load.
            self._task = Context().run(self._loop.create_task, self._look())

    def close(self) -> None:
        """Look no longer."""
        if self._task is not None:
            self._task.cancel()

    async def refresh(self) -> None:
        """Read the memory of the processes of models anew: it grows with their requests."""
        for entry in [each for each in self._account.entries if each.state == "loaded"]:
            if entry.version is None or entry.source == "backend":
                continue
            # Most models have none, and a look takes time of the loop.
            if not self._measuring.pids(entry.version):
                continue
            # A process that is started again has no pid for a while, so what once had one counts.
            entry.in_processes = True
            if of_processes := await self._measuring.of_processes(entry.version):
                entry.bytes[HOST] = entry.own + of_processes
                if entry.known:
                    entry.version.measured = shown(entry)

    async def _look(self) -> None:
        excess = True
        try:
            while self._loaded.is_set() or excess or self._grows():
                self._loaded.clear()
                try:
                    await self.refresh()
                    excess = await self._reservations.unload_excess()
                except Exception:  # the next look may succeed
                    logger.exception("the memory of models could not be read anew")
                await self._pause()
        finally:
            self._task = None

    async def _pause(self) -> None:
        try:
            await asyncio.wait_for(self._loaded.wait(), EVERY_S)
        except asyncio.TimeoutError:
            pass

    def _grows(self) -> bool:
        # A process that was just being started when the entry was read has a pid by now.
        return any(
            each.in_processes or (each.version is not None and self._measuring.pids(each.version))
            for each in self._account.entries
            if each.source != "backend"
        )
