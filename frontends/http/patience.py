"""How long the server waits for the rest of a request that has begun.

A client that sends a byte now and then would hold its connection, and what was received, for ever. So
all connections are looked at from time to time: nothing is done for a single request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from http import HTTPStatus
from typing import NamedTuple, Protocol

from frontends.http.errors import refusal

PROGRESS = 64 * 1024  # bytes of a body that must come within the time
_LOOKS = 4  # within the shortest time


def _cut(status: int, text: str) -> bytes:
    """An answer to a client that has not sent a request, after which its connection ends."""
    body = refusal(status, text).body
    head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\nServer: core\r\n\r\n"
    )
    return head.encode() + body


TOO_SLOW = _cut(408, "the rest of the request did not come in time")
TOO_MANY = _cut(503, "the server has too many connections; try again, or keep one for all requests")


class Unfinished(NamedTuple):
    """A request of which a part is missing.

    in_body    whether its headers are complete
    after      when the request before it was over, which tells it from others of its connection
    received   bytes, only growing while it is the same request
    """

    in_body: bool
    after: float
    received: int


class Waiting(Protocol):
    """A connection."""

    def unfinished(self) -> Unfinished | None:
        """The request that the client has begun, and the server waits for; None for none."""

    def give_up(self) -> None:
        """Tell the client that it was too slow, where an answer can be told, and close."""


class Patience:
    """Ends connections whose request does not come. Loop thread only.

    connections   those of the port, looked at as they are
    header_s      longest time until the headers are complete, 0 for any
    body_s        time in which PROGRESS bytes of a body must come, 0 for any
    """

    def __init__(
        self,
        connections: Collection[Waiting],
        header_s: float,
        body_s: float,
        *,
        given_up: Callable[[Waiting], None] = lambda connection: None,
    ):
        self._connections = connections
        self._limits = {False: header_s, True: body_s}
        self._given_up = given_up
        self._seen: dict[Waiting, tuple[Unfinished, float]] = {}  # with when it was seen first
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Look at all connections from now on."""
        limits = [limit for limit in self._limits.values() if limit]
        if limits:
            self._plan(loop, min(limits) / _LOOKS)

    def end(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _plan(self, loop: asyncio.AbstractEventLoop, pause_s: float) -> None:
        def due() -> None:
            self.look(loop.time())
            self._plan(loop, pause_s)

        self._timer = loop.call_later(pause_s, due)

    def look(self, now_s: float) -> None:
        """Give up those that have had their time. `now_s` is of any steady clock."""
        before, self._seen = self._seen, {}
        for connection in tuple(self._connections):
            found = connection.unfinished()
            if found is None or not self._limits[found.in_body]:
                continue
            known = before.get(connection)
            if known is None or not _is_same(known[0], found):
                self._seen[connection] = (found, now_s)
            elif now_s - known[1] < self._limits[found.in_body]:
                self._seen[connection] = known
            else:
                self._given_up(connection)
                connection.give_up()


def _is_same(before: Unfinished, now: Unfinished) -> bool:
    """Whether it is the same request, and no more of it has come than a slow client sends."""
    return (
        before.in_body == now.in_body
        and before.after == now.after
        and before.received <= now.received
        and not (now.in_body and now.received - before.received >= PROGRESS)
    )
