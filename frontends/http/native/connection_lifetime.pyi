"""ConnectionLifetime: the idle timeout and the end of a connection. Loop thread only."""

import asyncio

from frontends.http.native.body_reader import BodyReader
from frontends.http.request_timeouts import UnfinishedRequest

class ConnectionLifetime(BodyReader):
    """The part of a FastConnection that closes it when it is idle, too slow, or refused."""

    @property
    def transport(self) -> asyncio.Transport | None:
        """The transport; None before and after the connection."""
    def unfinished(self) -> UnfinishedRequest | None:
        """Return the request whose head or body is incomplete and still expected; None if there is none."""
    def give_up(self) -> None:
        """Close the connection of a slow client; write the error TOO_SLOW first if no response is pending."""
    def finish(self) -> None:
        """Close the connection after the responses to all begun requests; now, if there are none."""
    def look(self) -> None:
        """Close the connection if it has been idle for `keep_alive_s` seconds; else set the timer again."""
