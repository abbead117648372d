"""HttpConnections: the connections of one event loop to one HTTP port, kept open between requests."""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from urllib.parse import urlsplit

from core_ray.http_connection import HttpConnection

_OPEN_S = 10.0  # for a new connection
_IDLE_S = 15.0  # after which an unused connection is closed; the server closes it much later


class HttpConnections:
    """Gives each request a connection of its own. Not thread-safe: use it on one event loop only.

    url         of the port, such as http://127.0.0.1:8000
    authority   its host and port, as in the field Host
    """

    def __init__(self, url: str):
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 0
        self._secure = _unchecked() if parts.scheme == "https" else None
        self._idle: deque[HttpConnection] = deque()  # the last one used is the last one
        self._timer: asyncio.TimerHandle | None = None
        self.authority = parts.netloc.encode()

    async def take(self) -> HttpConnection:
        """Return a connection that is open and has no request. Raises OSError if the port does not answer."""
        while self._idle:
            found = self._idle.pop()
            if found.is_open:
                return found
            found.close()
        return await self._opened()

    async def _opened(self) -> HttpConnection:
        opening = asyncio.create_task(HttpConnection.to(self._host, self._port, self._secure))
        try:  # asyncio.wait_for can lose a cancellation before Python 3.12
            done, _ = await asyncio.wait([opening], timeout=_OPEN_S)
        except BaseException:
            _give_up(opening)
            raise
        if not done:
            _give_up(opening)
            where = self.authority.decode()
            raise ConnectionError(f"{where} has not answered within {_OPEN_S:g} s")
        return opening.result()

    def put_back(self, connection: HttpConnection) -> None:
        """Keep a connection whose response is complete, if it is open."""
        if not connection.is_open:
            connection.close()
            return
        self._idle.append(connection)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_IDLE_S, self._close_unused)

    def _close_unused(self) -> None:
        loop = asyncio.get_running_loop()
        while self._idle and self._idle[0].idle_s <= loop.time() - _IDLE_S:
            self._idle.popleft().close()
        again_s = self._idle[0].idle_s + _IDLE_S if self._idle else None
        self._timer = None if again_s is None else loop.call_at(again_s, self._close_unused)

    def close(self) -> None:
        """Close the unused connections."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._idle:
            self._idle.pop().close()


def _give_up(opening: asyncio.Task[HttpConnection]) -> None:
    """End a task that opens a connection, and close what it opens meanwhile."""

    def close(ended: asyncio.Task[HttpConnection]) -> None:
        if not ended.cancelled() and ended.exception() is None:
            ended.result().close()

    opening.cancel()
    opening.add_done_callback(close)


def _unchecked() -> ssl.SSLContext:
    """Return a context that accepts any certificate: that of this very process names its public address."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    return made
