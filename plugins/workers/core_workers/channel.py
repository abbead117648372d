"""Channel: messages between the supervisor and a worker, over a socketpair whose one end the worker inherits.

A message has a head, which the supervisor reads, and a body, which it only forwards. On the wire: the
lengths of both (32 bits each, little endian), the head as JSON, the body.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from typing import Any, NamedTuple

_LENGTHS = struct.Struct("<II")

MOST_HEAD_BYTES = 2**20
MOST_BODY_BYTES = 2**32 - 1


class Message(NamedTuple):
    """A message between the supervisor and a worker.

    head   a JSON object; its member `kind` is the type of the message
    body   one or several values that values.py has packed, concatenated; b"" for none
    """

    head: dict[str, Any]
    body: bytes = b""


class Channel:
    """One end of a channel, made by `open_channel`. Not thread-safe: use it on the event loop only."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        self._reader = reader
        self._writer = writer

    def send(self, head: dict[str, Any], body: bytes = b"") -> None:
        """Put a message into the send buffer, without waiting. If the channel is closed, drop the message.

        Raises ValueError if the head or the body is too long.
        """
        text = json.dumps(head).encode()
        if len(text) > MOST_HEAD_BYTES or len(body) > MOST_BODY_BYTES:
            raise ValueError(
                f"a message of {len(text)} and {len(body)} bytes is too long for the workers; "
                f"{MOST_HEAD_BYTES} and {MOST_BODY_BYTES} are the most"
            )
        if self._writer.is_closing():
            return
        self._writer.write(_LENGTHS.pack(len(text), len(body)) + text)
        if body:
            self._writer.write(body)

    async def receive(self) -> Message | None:
        """Wait for the next message and return it; None once the other end is closed, or has died.

        Raises ValueError for an invalid message, which is an error of the program at the other end.
        """
        try:
            sizes = _LENGTHS.unpack(await self._reader.readexactly(_LENGTHS.size))
            if sizes[0] > MOST_HEAD_BYTES:
                raise ValueError(f"the head of a message has {sizes[0]} bytes")
            head = json.loads(await self._reader.readexactly(sizes[0]))
            return Message(head, await self._reader.readexactly(sizes[1]))
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    def close(self) -> None:
        self._writer.close()


async def open_channel(end: socket.socket) -> Channel:
    """Return the channel over one end of a socketpair. The channel owns the socket."""
    return Channel(*await asyncio.open_unix_connection(sock=end))
