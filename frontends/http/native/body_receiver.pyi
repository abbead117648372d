"""Protocols that receive large bodies without a copy. Loop thread only.

The transport reads directly into the memory of the body; a FastConnection would copy its bytes twice. From
`begin()` on a receiver replaces the FastConnection as the protocol of the transport.
"""

import asyncio
from typing import Any

def append(body: bytearray, piece: bytes, most: int) -> None:
    """Append all of `piece` to `body`.

    most   largest size of the whole body in bytes: bounds its spare capacity, and is not checked

    The capacity doubles when it is full, so that a large body is seldom moved; a bytearray by itself grows by
    an eighth. Unused capacity takes no physical memory.
    """

class BodyReceiver(asyncio.BufferedProtocol):
    """Receives the rest of a body after its first bytes.

    connection  the FastConnection; gets `received()` when the body is complete, `refused()` if the memory
                account refuses it, and all other events of the transport
    body        the received bytes; the receiver appends to it
    there       number of received bytes of the body
    size        size of the whole body in bytes

    Memory for the body is allocated as bytes arrive, not for the length in the head.
    """

    in_body: bool
    there: int

    def __init__(
        self, connection: Any, transport: asyncio.Transport, body: bytearray, there: int, size: int
    ) -> None: ...
    def begin(self) -> None:
        """Become the protocol of the transport: all further bytes belong to the body."""

class RequestReceiver(asyncio.BufferedProtocol):
    """Receives whole requests of a client that repeats the same head.

    connection  the FastConnection; gets `landed()` for each request, `astray()` for other bytes or if memory
                is refused, and all other events of the transport
    head        expected head of each request
    body_size   size of each body in bytes; memory for it is allocated before it arrives
    json_size   size of its JSON in bytes; the tensors after the JSON are aligned to a cache line
    """

    def __init__(
        self,
        connection: Any,
        transport: asyncio.Transport,
        head: bytes,
        body_size: int,
        json_size: int,
    ) -> None: ...
    def begin(self) -> None:
        """Become the protocol of the transport: all further bytes come to this object."""

    def leave(self) -> bytes:
        """Make the FastConnection the protocol again; return the received bytes of the next request."""

    @property
    def there(self) -> int:
        """Number of received bytes of the next request."""

    @property
    def in_body(self) -> bool:
        """Whether the head of the next request is complete."""
