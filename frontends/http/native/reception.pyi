"""The rest of a large body, received where it is to stay. Loop thread only."""

import asyncio
from typing import Any

class Reception(asyncio.BufferedProtocol):
    """Takes the place of a lane as the protocol of its transport until the body is there.

    lane        is given `received()` when it is, and everything that happens meanwhile
    body        the beginning of it, which the rest follows
    there       bytes of that beginning
    size        bytes of the whole

    The transport reads into the body itself; a lane is given a copy of what the transport has read,
    and copies it again. The body grows with what has come: a length that is only claimed takes no
    memory.
    """

    def __init__(
        self, lane: Any, transport: asyncio.Transport, body: bytearray, there: int, size: int
    ) -> None: ...
    def begin(self) -> None:
        """From here on what comes is the body's."""
