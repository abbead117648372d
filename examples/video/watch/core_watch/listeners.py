"""Events and Pictures: what is sent to those who look. Listener: one of them, as the rest of a response."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator

_MOST_EVENTS = 250  # that wait for a slow client: ten seconds of one video
BOUNDARY = b"picture"


class Listener:
    """The parts of one response. A client that reads slowly loses the oldest. Loop thread only."""

    def __init__(self, group: _Group, most: int):
        self._group = group
        self._parts: deque[bytes] = deque(maxlen=most)
        self._changed = asyncio.Event()
        self._ended = False

    def put(self, part: bytes) -> None:
        """Add a part."""
        self._parts.append(part)
        self._changed.set()

    def end(self) -> None:
        """Send what waits, and no more."""
        self._ended = True
        self._changed.set()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while self._parts or not self._ended:
            while self._parts:
                yield self._parts.popleft()
            self._changed.clear()
            if not self._ended:
                await self._changed.wait()

    async def aclose(self) -> None:
        """Get no more parts."""
        self._group.leave(self)


class _Group:
    """Clients that get the same parts. Loop thread only."""

    def __init__(self, most: int):
        self._most = most
        self._listeners: set[Listener] = set()
        self._ended = False

    @property
    def wanted(self) -> bool:
        """Return whether anyone listens."""
        return bool(self._listeners)

    def join(self) -> Listener:
        """Return the parts from now on."""
        listener = Listener(self, self._most)
        self._listeners.add(listener)
        if self._ended:
            listener.end()
        return listener

    def leave(self, listener: Listener) -> None:
        self._listeners.discard(listener)

    def end(self) -> None:
        """End the responses of all listeners."""
        self._ended = True
        for each in self._listeners:
            each.end()

    def _put(self, part: bytes) -> None:
        for each in self._listeners:
            each.put(part)


class Events(_Group):
    """JSON as server-sent events."""

    def __init__(self) -> None:
        super().__init__(_MOST_EVENTS)

    def send(self, data: bytes) -> None:
        """Send a line of JSON."""
        self._put(b"data: %b\n\n" % data)


class Pictures(_Group):
    """JPEG files as Motion JPEG: each replaces the one before. A slow client gets the newest."""

    def __init__(self) -> None:
        super().__init__(1)

    def send(self, file: bytes) -> None:
        """Send a picture."""
        head = b"Content-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n" % len(file)
        # A browser shows a picture when the boundary after it has come.
        self._put(head + file + b"\r\n--" + BOUNDARY + b"\r\n")
