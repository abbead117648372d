"""Load slots: limit parallel loads, and lend a slot while its owner only waits.

ModelVersion ─► [LoadSlot] ─► Model.waits.  A model may load another one during its own load. Until that
one is ready, it and the models that it waits for may use the slot.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar

_loading: ContextVar[bool] = ContextVar("loading", default=False)


def asked_in_a_load() -> bool:
    """Return whether a model asked for the current task during its own load, and waits for it."""
    return _loading.get()


class LoadSlot:
    """A slot that a version holds while it loads: `async with LoadSlot(slots):`. Loop thread.

    slots   the server's semaphore with --model-load-thread-count slots
    """

    def __init__(self, slots: asyncio.Semaphore):
        self._places = slots
        self._held = False
        self._over = False
        self._waits = 0  # number of its instances that wait for another load

    async def __aenter__(self) -> LoadSlot:
        await self._places.acquire()
        self._held = True
        return self

    async def __aexit__(self, *error: object) -> None:
        self._over = True
        self._give_back()

    @asynccontextmanager
    async def lent(self) -> AsyncIterator[None]:
        """Lend the slot during the block. After the last such block, retake it unless the load is over."""
        self._waits += 1
        self._give_back()
        token = _loading.set(not self._over)
        try:
            yield
        finally:
            _loading.reset(token)
            self._waits -= 1
            await self._take_back()

    async def _take_back(self) -> None:
        if self._over or self._held or self._waits:
            return
        await self._places.acquire()
        if self._over or self._held or self._waits:  # changed while this task waited in the queue
            self._places.release()
        else:
            self._held = True

    def _give_back(self) -> None:
        if self._held:
            self._held = False
            self._places.release()
