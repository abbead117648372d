"""When a connection ends. Loop thread only."""

import asyncio

from frontends.http.native.body_reader import BodyReader
from frontends.http.request_timeouts import UnfinishedRequest

class ConnectionLifetime(BodyReader):
    """What a FastConnection is beside its requests: it closes when it is idle, too slow, or refused."""

    @property
    def transport(self) -> asyncio.Transport | None:
        """Return the transport; None after the end."""
    def unfinished(self) -> UnfinishedRequest | None:
        """Return the request that the client has begun and the server waits for; None for none."""
    def give_up(self) -> None:
        """Send an error to the client that was too slow, if it can still be sent, and close."""
    def finish(self) -> None:
        """Close when the last request that has begun is answered; now, if there is none."""
    def look(self) -> None:
        """Close a connection on which nothing was answered for as long as the port keeps it."""
