"""How long the server waits for the rest of a request that has begun.

Otherwise a client that sends a byte now and then would hold its connection and its memory for ever. All
connections are checked periodically: a single request costs nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from http import HTTPStatus
from typing import NamedTuple, Protocol

from frontends.http.errors import refusal

PROGRESS = 64 * 1024  # bytes of a body that must come within the time
_LOOKS = 4  # checks within the shortest time


def _cut(status: int, text: str) -> bytes:
    """Return the bytes of an error response, after which the connection closes."""
    body = refusal(status, text).body
    head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\nServer: core\r\n\r\n"
    )
    return head.encode() + body


TOO_SLOW = _cut(408, "the rest of the request did not come in time")
TOO_MANY = _cut(503, "the server has too many connections; try again, or keep one for all requests")


class UnfinishedRequest(NamedTuple):
    """A request of which a part is missing."""

    in_body: bool  # whether its headers are complete
    after: float  # when the request before it ended: identifies it on its connection
    received: int  # bytes of it, which only grow while it is the same request


class TimedConnection(Protocol):
    def unfinished(self) -> UnfinishedRequest | None:
        """Return the request of which the server waits for a part; None if it waits for no part."""

    def give_up(self) -> None:
        """Send an error to the client that was too slow, if it can still be sent, and close."""


class RequestTimeouts:
    """Closes connections whose request does not arrive. Not thread-safe: call from the event loop only.

    connections   all connections of the port; read again at each check
    header_s      longest time until the headers are complete; 0 for no limit
    body_s        time in which PROGRESS bytes of a body must come; 0 for no limit of a body at all
    body_rate     least bytes per second of a body; 0 for no limit. After n bytes have come, the body may
                  take body_s + n / body_rate seconds
    given_up      called with each connection before it is closed
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
        limits = [limit for limit in self._limits.values() if limit]
        if limits:
            self._plan(loop, min(limits) / _LOOKS)

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _plan(self, loop: asyncio.AbstractEventLoop, pause_s: float) -> None:
        def due() -> None:
            self.look(loop.time())
            self._plan(loop, pause_s)

        self._timer = loop.call_later(pause_s, due)

    def look(self, now_s: float) -> None:
        """Close the connections whose request is late by the limits. `now_s` is from any monotonic clock."""
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
    """A request that was unfinished at an earlier check."""

    found: UnfinishedRequest  # its state at `progress_s`
    progress_s: float  # last time when PROGRESS more bytes of it had come
    begun_s: float  # when it was first seen


def _is_same(before: UnfinishedRequest, now: UnfinishedRequest) -> bool:
    return (
        before.in_body == now.in_body
        and before.after == now.after
        and before.received <= now.received
    )
