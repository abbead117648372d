"""The fast lane of a connection: complete, regular requests for inference, straight from their bytes.

Loop thread only.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

from core.server import Server

class Guest(Protocol):
    """The other engine, as a protocol on the transport of a lane.

    idle   it has answered every request whose head it has seen and waits for the next
    busy   it has a request without an answer
    used   time.monotonic() when its last request was over
    It closes the transport by itself, and pauses its reading only while it is not idle.
    """

    @property
    def idle(self) -> bool: ...
    @property
    def busy(self) -> bool: ...
    @property
    def used(self) -> float: ...
    def connection_made(self, transport: asyncio.BaseTransport) -> None: ...
    def connection_lost(self, exc: BaseException | None) -> None: ...
    def data_received(self, data: bytes) -> None: ...
    def pause_writing(self) -> None: ...
    def resume_writing(self) -> None: ...

class Port:
    """What the lanes of one port share.

    guest          makes the other engine's protocol for one connection, when it is first needed
    opened, lost   told of each connection when it begins and ends
    keep_alive_s   how long a connection is kept on which nothing is answered
    """

    def __init__(
        self,
        server: Server,
        loop: asyncio.AbstractEventLoop,
        *,
        guest: Callable[[], Guest],
        opened: Callable[[Lane, asyncio.Transport], None],
        lost: Callable[[Lane], None],
        keep_alive_s: float,
    ) -> None: ...

class Lane(asyncio.Protocol):
    """One connection, between its transport, the server and a guest.

    A request for inference whose head is in the common form (head.hpp) is given to its model as soon
    as it is complete; requests behind it go on before it is answered, at most 64 of them. Answers
    leave in the order of the requests, with the bytes of the other engine.

    Every other byte is the guest's, unchanged. It gets them when all requests before them are
    answered, and keeps the connection until it has answered and the next byte begins a request.

    Reading is paused while too many requests are in flight, while bytes wait for the guest's turn and
    while the client does not read; answers wait meanwhile.
    """

    def __init__(self, port: Port) -> None: ...
    def finish(self) -> None:
        """Close when the last request that has begun is answered; now, if there is none."""

    def cut(self) -> None:
        """Close now; requests in flight are cancelled."""

    def turn(self) -> None:
        """The end of a turn of the loop in which answers came."""

    def look(self) -> None:
        """Close a connection on which nothing was answered for as long as the port keeps it."""
