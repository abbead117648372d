"""Unread: the responses that clients do not read, and which clients lose their connections.

ClientLink.unread, ClientLink.left ─► [Unread.tick] ─► each second: too much waits ─► ClientLink.abort
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from core_router.grpc.native.link import ClientLink

logger = logging.getLogger("core_router")

MOST_BYTES = 1 << 30
"""Bytes that wait for all clients together, before those that take too few lose their connections."""

STEP = 64 * 1024
"""Bytes of responses with which a client goes on; fewer if no more waited. One byte would cost it nothing."""

LEAST_S = 60.0
"""Seconds that a client has for them at least: the system takes bytes from the router in large pieces."""


class _Mark(NamedTuple):
    """What a client had taken when it went on last.

    next      value of ClientLink.left with which it goes on again
    since_s   when that was
    """

    next: int
    since_s: float


class Unread:
    """The connections of a port for which bytes wait. Event loop only.

    A client that goes on in time keeps its connection, however much waits.
    """

    def __init__(self) -> None:
        self._marks: dict[ClientLink, _Mark] = {}

    def tick(self, links: Iterable[ClientLink], now_s: float, client_s: float) -> None:
        """Look at all connections, once a second. Close some if too much waits.

        client_s   seconds in which a client must go on; LEAST_S if that is more
        """
        marks, waiting = {}, 0
        for link in links:
            if size := link.unread():
                waiting += size
                left, mark = link.left(), self._marks.get(link)
                if mark is None or left >= mark.next:
                    mark = _Mark(left + min(size, STEP), now_s)
                marks[link] = mark
        self._marks = marks
        if waiting > MOST_BYTES:
            self._close(waiting - MOST_BYTES, now_s, max(client_s, LEAST_S))

    def _close(self, excess: int, now_s: float, silent_s: float) -> None:
        """Close connections that have not gone on for some seconds, the longest silent first."""
        count = freed = 0
        for link, mark in sorted(self._marks.items(), key=lambda each: each[1].since_s):
            if freed >= excess or mark.since_s >= now_s - silent_s:
                break
            count += 1
            freed += link.unread()
            link.abort()
        if count:
            logger.warning(
                "%d gRPC clients lost their connections: each took less than %d KiB of its responses "
                "in %g s, while more than %d bytes waited for all clients, of which %d for these; "
                "--client-timeout-secs gives clients more time",
                count,
                STEP // 1024,
                silent_s,
                MOST_BYTES,
                freed,
            )
