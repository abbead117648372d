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


class UnfinishedRequest(NamedTuple):
    """A request of which a part is missing.

    in_body    whether its headers are complete
    after      when the request before it was over, which tells it from others of its connection
    received   bytes of it, only growing while it is the same request
    """

    in_body: bool
    after: float
    received: int


class TimedConnection(Protocol):
    """A connection."""

    def unfinished(self) -> UnfinishedRequest | None:
        """The request that the client has begun, and the server waits for; None for none."""

    def give_up(self) -> None:
        """Tell the client that it was too slow, where an answer can be request_head, and close."""


class RequestTimeouts:
    """Ends connections whose request does not come. Loop thread only.

    connections   those of the port, looked at as they are
    header_s      longest time until the headers are complete, 0 for any
    body_s        time in which PROGRESS bytes of a body must come, 0 for any
    body_rate     bytes that come in a second of the rest of the time that a body has, 0 for any number: a
                  body of n bytes is complete within body_s + n / body_rate
    """

    def __init__(
        self,
        connections: Collection[TimedConnection],
        header_s: float,
        body_s: float,
        body_rate: float,
        *,
        given_up: Callable[[TimedConnection], None] = lambda connection: None,
    ):
        self._connections = connections
        self._limits = {False: header_s, True: body_s}
        self._body_rate = body_rate
        self._given_up = given_up
        self._seen: dict[TimedConnection, _Progress] = {}
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
            if known is None or not _is_same(known.found, found):
                known = _Progress(found, now_s, now_s)
            elif found.in_body and found.received - known.found.received >= PROGRESS:
                known = _Progress(found, now_s, known.begun_s)
            if self._is_late(known, found, now_s):
                self._given_up(connection)
                connection.give_up()
            else:
                self._seen[connection] = known

    def _is_late(self, known: _Progress, found: UnfinishedRequest, now_s: float) -> bool:
        limit_s = self._limits[found.in_body]
        if now_s - known.progress_s >= limit_s:
            return True
        if not found.in_body or not self._body_rate:
            return False
        return now_s - known.begun_s >= limit_s + found.received / self._body_rate


class _Progress(NamedTuple):
    """A request that was unfinished before.

    found        as it was at `progress_s`
    progress_s   when PROGRESS more bytes of it had come for the last time
    begun_s      when it was seen first
    """

    found: UnfinishedRequest
    progress_s: float
    begun_s: float


def _is_same(before: UnfinishedRequest, now: UnfinishedRequest) -> bool:
    """Whether it is the same request."""
    return (
        before.in_body == now.in_body
        and before.after == now.after
        and before.received <= now.received
    )
