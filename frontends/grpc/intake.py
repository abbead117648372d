"""What is in flight, so that a stop can refuse the new and wait for the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from core.errors import CoreError, unavailable

_STOPPING = "GRPC server is shutting down and has stopped accepting new requests."


class Intake:
    """Counts the inference requests of all calls and streams. Loop thread only.

    in_flight   requests that were let in and have not had their last answer
    """

    def __init__(self) -> None:
        self.in_flight = 0
        self._stopping = False
        self._drained = asyncio.Event()
        self._listeners: set[Callable[[CoreError], None]] = set()

    def enter(self) -> None:
        """A request begins; `leave` must follow once. Raises CoreError(UNAVAILABLE) while stopping."""
        if self._stopping:
            raise unavailable(_STOPPING)
        self.in_flight += 1

    def leave(self) -> None:
        """A request has had its last answer, or nobody waits for it."""
        self.in_flight -= 1
        if self._stopping and not self.in_flight:
            self._drained.set()

    def on_end(self, listener: Callable[[CoreError], None]) -> Callable[[], None]:
        """Call `listener` when everything was answered and open streams should end.

        Returns the function that takes the listener away again.
        """
        self._listeners.add(listener)
        return lambda: self._listeners.discard(listener)

    async def drain(self, timeout_s: float) -> None:
        """Let nothing more in, wait at most `timeout_s` for what is in, then end open streams."""
        self._stopping = True
        if self.in_flight:
            try:
                await asyncio.wait_for(self._drained.wait(), timeout_s)
            except asyncio.TimeoutError:
                pass  # those who still wait are cut off by the transport
        for listener in list(self._listeners):
            listener(unavailable(_STOPPING))
