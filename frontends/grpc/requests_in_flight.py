"""RequestsInFlight: counts requests, so that a stop can refuse new ones and wait for the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from core.errors import CoreError, unavailable
from frontends.shared.shutdown import GOODBYE_S, not_done

_STOPPING = "GRPC server is shutting down and has stopped accepting new requests."


Listener = Callable[[CoreError, CoreError], None]


class RequestsInFlight:
    """Counts the inference requests of all calls and streams. Not thread-safe: use on the event loop.

    in_flight   requests that have entered and have not had their last response
    """

    def __init__(self) -> None:
        self.in_flight = 0
        self._stopping = False
        self._drained = asyncio.Event()
        self._listeners: set[Listener] = set()
        self._all_gone = asyncio.Event()  # of those that listen

    def enter(self) -> None:
        """Begin a request; `leave` must follow once. Raises CoreError(UNAVAILABLE) while stopping."""
        if self._stopping:
            raise unavailable(_STOPPING)
        self.in_flight += 1

    def leave(self) -> None:
        """End a request, after its last response, its refusal or its cancellation."""
        self.in_flight -= 1
        if self._stopping and not self.in_flight:
            self._drained.set()

    def on_end(self, listener: Listener) -> Callable[[], None]:
        """Let `drain` call `listener` of a stream to end the stream.

        listener   gets two errors: the first for a stream with requests in flight, the second for an idle one
        Returns a function that removes the listener; call it when the stream has ended.
        """
        self._listeners.add(listener)
        return lambda: self._forget(listener)

    def _forget(self, listener: Listener) -> None:
        self._listeners.discard(listener)
        if not self._listeners:
            self._all_gone.set()

    async def drain(self, timeout_s: float) -> None:
        """Refuse new requests, wait at most `timeout_s` for those in flight, then end open streams.

        Wait at most GOODBYE_S seconds more, until the streams have sent their errors to their clients.
        """
        self._stopping = True
        if self.in_flight:
            try:
                await asyncio.wait_for(self._drained.wait(), timeout_s)
            except asyncio.TimeoutError:
                pass  # unary calls that still wait are cut off by the transport
        if not self._listeners:
            return
        self._all_gone.clear()  # it is set whenever the last stream ends
        for listener in list(self._listeners):
            listener(not_done(timeout_s), unavailable(_STOPPING))
        try:
            await asyncio.wait_for(self._all_gone.wait(), GOODBYE_S)
        except asyncio.TimeoutError:
            pass  # the client does not read: the transport cuts it off
