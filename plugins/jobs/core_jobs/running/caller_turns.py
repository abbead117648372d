"""CallerTurns: the jobs of one caller take turns at its limits."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from core.server import InferenceServer


class CallerTurn:
    """What the jobs of one caller in this process share. Event loop only.

    lock    held by the job whose request begins next. The jobs get it in the order in which they ask for it
    again   set when that request should ask its limits again
    """

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.again = asyncio.Event()


class CallerTurns:
    """The turns of all callers with jobs in this process. Event loop only."""

    def __init__(self, server: InferenceServer):
        self._turns: WeakValueDictionary[str, CallerTurn] = WeakValueDictionary()

    @staticmethod
    def of(server: InferenceServer) -> CallerTurns:
        """Return the turns of a server: the same object at every call."""
        return server.shared(CallerTurns)

    def turn(self, caller: str) -> CallerTurn:
        """Return the turn of a caller: the same object as long as one of its jobs holds it."""
        found = self._turns.get(caller)
        if found is None:
            found = self._turns[caller] = CallerTurn()
        return found

    async def close(self) -> None:
        """Forget the callers, because the server has stopped."""
        self._turns.clear()
