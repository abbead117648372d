"""The fast path of a connection: complete, regular requests for inference, straight from their bytes.

Loop thread only.
"""

import asyncio

from frontends.http.native.listener_context import ListenerContext
from frontends.http.request_timeouts import UnfinishedRequest

class FastConnection(asyncio.Protocol):
    """One connection, between its transport, the server and a fallback.

    A request for inference whose head is in the common form (head.hpp) is given to its model as soon
    as it is complete; requests behind it go on before it is answered, at most 64 of them. Answers
    leave in the order of the requests, with the bytes of the other engine.

    Every other byte is aiohttp's, unchanged. It gets them when all requests before them are
    answered, and keeps the connection until it has answered and the next byte begins a request.

    Reading is paused while too many requests run, while bytes wait for aiohttp's turn and
    while the client does not read; answers wait meanwhile.
    """

    def __init__(self, context: ListenerContext) -> None: ...
    @property
    def transport(self) -> asyncio.Transport | None:
        """None after the end."""

    def unfinished(self) -> UnfinishedRequest | None:
        """The request that the client has begun, and the server waits for; None for none."""

    def give_up(self) -> None:
        """Tell the client that it was too slow, where an answer can be request_head, and close."""

    def finish(self) -> None:
        """Close when the last request that has begun is answered; now, if there is none."""

    def cut(self) -> None:
        """Close now; running requests are cancelled."""

    def grow(self, size: int) -> bool:
        """Count `size` bytes more for the body that is being received; whether there is room for them."""

    def refused(self) -> None:
        """A BodyReceiver has got more of the body than there is room for."""

    def send_more(self) -> None:
        """The transport has taken what it got."""

    def received(self) -> None:
        """The body is there: a BodyReceiver has got the rest of it."""

    def turn(self) -> None:
        """The end of a turn of the loop in which answers came."""

    def look(self) -> None:
        """Close a connection on which nothing was answered for as long as the port keeps it."""
