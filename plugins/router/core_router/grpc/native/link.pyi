from asyncio import AbstractEventLoop
from typing import Any, Protocol

class Receiver:
    """Gets the news of one stream of HTTP/2. Subclasses override all methods. Event loop only.

    A block is the fields of a head or of trailers as bytes: see blocks.pyi.
    """

    def received(
        self, head: bytes | None, data: bytes | None, trailers: bytes | None, is_over: bool
    ) -> None:
        """Process what has come. None for a part that has not: for all of them, only the head of a call has.

        head, trailers   blocks
        is_over          whether the other side sends no more; a request to a server gets no more news then
        """

    def gone(self, error: int) -> None:
        """Process the end of the stream: it was reset, or its connection has ended.

        error   a code of HTTP/2
        """

    def room(self) -> None:
        """Go on to write, after `Link.write` has returned False."""

class Flusher:
    """Writes what the links of a router have to send, once in each iteration of the loop."""

    def __init__(self, loop: AbstractEventLoop): ...

class Link:
    """A connection: the protocol of its transport. Functions with an id accept that of a closed stream."""

    def streams(self) -> int:
        """Return the number of open streams."""
    def connection_made(self, transport: Any) -> None: ...
    def connection_lost(self, error: Exception | None) -> None: ...
    def get_buffer(self, sizehint: int) -> memoryview: ...
    def buffer_updated(self, count: int) -> None: ...
    def write(self, id: int, data: bytes) -> bool:
        """Send bytes. Return False if the caller should wait for `room` before the next ones."""
    def finish(self, id: int, trailers: bytes | None) -> None:
        """End what is sent. A response has a block of trailers; its receiver gets no more news."""
    def open_window(self, id: int) -> None:
        """Let the other side send more: the bytes that have come are passed on."""
    def cancel(self, id: int) -> None:
        """End a stream on both sides; its receiver gets no more news."""
    def say_goodbye(self) -> None:
        """Announce the end of the connection; at the second call, accept no more streams."""
    def tick(self) -> None:
        """Begin another second of the limits."""
    def close(self) -> None:
        """Close the connection after what was written."""
    def abort(self) -> None:
        """Close the connection at once."""

class _Owner(Protocol):
    """What a ClientLink needs of its port.

    now_s   time of the monotonic clock, at most a second old
    """

    @property
    def now_s(self) -> float: ...
    def enter(self, link: ClientLink) -> bool:
        """Add a connection. Return False if it must be closed."""
    def leave(self, link: ClientLink) -> None: ...
    def begin(self, link: ClientLink, id: int, head: bytes) -> Receiver:
        """Return what gets the news of a new call."""

class ClientLink(Link):
    """A connection of a client.

    active_s   time of the owner's clock when bytes arrived last, or when a call was last seen open
    """

    active_s: float
    def __init__(self, owner: _Owner, flusher: Flusher): ...
    def respond(self, id: int, head: bytes, is_last: bool) -> None:
        """Send the head of a response. is_last: nothing follows, and the receiver gets no more news."""
    def unread(self) -> int:
        """Return how many bytes of responses wait for the client, with those in the transport."""
    def left(self) -> int:
        """Return how many bytes of messages of responses have left the router for the client.

        Frames without such bytes that wait in the transport count against it, so it may fall.
        """

class ServerLink(Link):
    """A connection to a server.

    used_s   time of the monotonic clock when it last became idle
    """

    used_s: float
    @property
    def server(self) -> Any: ...
    def takes_requests(self) -> bool:
        """Return whether the connection takes another call: the server has not said goodbye."""
    def __init__(self, server: Any, pool: Any, flusher: Flusher): ...
    def receivers(self) -> list[Any]:
        """Return the receivers of all open streams."""
    def request(self, head: bytes, timeout: bytes, receiver: Receiver) -> int:
        """Send the head of a request. Return its id; -1 if the connection takes no more.

        head      block of the client's request
        timeout   in place of its grpc-timeout; b"" to leave it
        """
