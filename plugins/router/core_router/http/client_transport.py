"""ClientTransport: what a connection of a client writes, which bytes it keeps for later, and how it ends."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Coroutine
from typing import Any

_MOST_EARLY = 64 * 1024  # bytes after a request that are received before its response
_LINGER_S = 2.0  # in which a client reads the response to a request that it is still sending


class ClientTransport:
    """The transport of a client's connection, as long as it is open. Event loop only.

    It receives while neither of two holds: `_is_paused`, a server does not take what there is; `_is_held`,
    many bytes wait for their turn.
    """

    def __init__(self) -> None:
        self._transport: Any = None
        self._rest = b""  # received bytes, of which those from `_at` on are not processed yet
        self._at = 0
        self._is_paused = False
        self._is_held = False
        self._task: asyncio.Task[None] | None = None

    def eof_received(self) -> bool | None:
        return None  # a client that sends no more gets no response: the transport closes

    def write(self, data: bytes) -> None:
        """Send bytes of a response."""
        if self._transport is not None:
            self._transport.write(data)

    def pause_reading(self) -> None:
        """Receive no more until `resume_reading`: the server does not take what there is."""
        if self._transport is not None and not self._is_paused:
            self._is_paused = True
            if not self._is_held:
                self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self._transport is not None and self._is_paused:
            self._is_paused = False
            if not self._is_held:
                self._transport.resume_reading()

    def _keep(self, data: bytes) -> None:
        """Keep received bytes for later. If many wait, receive no more until `_receive_more`."""
        self._rest = self._rest[self._at :] + data
        self._at = 0
        if len(self._rest) > _MOST_EARLY and self._transport is not None and not self._is_held:
            self._is_held = True
            if not self._is_paused:
                self._transport.pause_reading()

    def _receive_more(self) -> None:
        """Receive again if few bytes wait."""
        if self._transport is None or not self._is_held:
            return
        if len(self._rest) - self._at <= _MOST_EARLY:
            self._is_held = False
            if not self._is_paused:
                self._transport.resume_reading()

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Run what answers a request; the end of the connection cancels it."""
        self._task = asyncio.get_running_loop().create_task(work)

    def close(self) -> None:
        """Close the connection after what was written."""
        if self._transport is not None:
            self._transport.close()

    def close_slowly(self) -> None:
        """Close the connection when the client has read what was written, although it is still sending."""
        transport = self._transport
        if transport is None:
            return
        # Closing with unread bytes of the client would destroy the response on its way.
        self._rest, self._at = b"", 0
        self._receive_more()
        self.resume_reading()
        if transport.can_write_eof():
            transport.write_eof()
        asyncio.get_running_loop().call_later(_LINGER_S, transport.close)

    def abort(self) -> None:
        """Reset the connection: the end of a response without a size is the end of its connection."""
        if self._transport is not None:
            found = self._transport.get_extra_info("socket")
            found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._transport.abort()
