"""Large bodies, received where they are to stay. Loop thread only.

A transport reads into their memory itself. A connection gets a copy of what the transport has read, and
copies it again. Each takes the place of a connection as the protocol of its transport, from `begin()` on.
"""

import asyncio
from typing import Any

def append(body: bytearray, piece: bytes, most: int) -> None:
    """Add `piece` to a body that will have at most `most` bytes.

    Its room is doubled when it is full, so that a large body is moved a few times; a bytearray itself grows
    by an eighth. Room that nothing has come for takes no memory.
    """

class BodyReceiver(asyncio.BufferedProtocol):
    """The rest of a body, whose beginning the fast path has received.

    lane        is given `received()` when the body is there, and everything that happens meanwhile
    body        the beginning of it, which the rest follows
    there       bytes of that beginning
    size        bytes of the whole

    The body grows with what has come: a length that is only claimed takes no memory.
    """

    in_body: bool
    there: int

    def __init__(
        self, connection: Any, transport: asyncio.Transport, body: bytearray, there: int, size: int
    ) -> None: ...
    def begin(self) -> None:
        """From here on what comes is the body's."""

class RequestReceiver(asyncio.BufferedProtocol):
    """All of the requests of a client that sends the same head again and again.

    lane        is given `landed()` for each request, `astray()` for bytes that are not one, and everything
                that happens meanwhile
    head        of the next request, as of those before
    body_size   bytes of its body, few enough to be taken before they have come
    json_size   bytes of them in front of the tensors, which are put where a line of the cache begins
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
        """From here on what comes is received here."""

    def leave(self) -> bytes:
        """The fast path receives again; returns what has come of the next request."""

    @property
    def there(self) -> int:
        """Bytes of the next request that have come."""

    @property
    def in_body(self) -> bool:
        """Whether its head has come."""
