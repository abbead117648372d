"""ConnectionLifetime: the idle timeout and the end of a connection. Loop thread only."""

import asyncio

from frontends.http.native.body_reader import BodyReader
from frontends.http.request_timeouts import UnfinishedRequest

class ConnectionLifetime(BodyReader):
    """The part of a FastConnection that closes it when it is idle, too slow, or refused."""

    @property
    def transport(self) -> asyncio.Transport | None:
        """Return the transport; None after the end."""
    def unfinished(self) -> UnfinishedRequest | None:
        """Return the incomplete request that the server waits for; None without one."""
    def give_up(self) -> None:
        """Close the connection of a slow client; send an error first if no response is pending."""
    def finish(self) -> None:
        """Close after the responses to all begun requests; now, if there are none."""
    def look(self) -> None:
        """Close the connection if it has been idle for `keep_alive_s`; else check again later."""
