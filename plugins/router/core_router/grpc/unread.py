"""Unread: the responses that clients do not read, and which clients lose their connections.

ClientLink.unread, ClientLink.left ─► [Unread.tick] ─► each second: too much waits ─► ClientLink.abort
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core_router.grpc.native.link import ClientLink

logger = logging.getLogger("core_router")

MOST_BYTES = 1 << 30
"""Bytes that wait for all clients together, before those that take none lose their connections."""


class Unread:
    """The connections of a port for which bytes wait. Event loop only.

    A client that takes any of its bytes keeps its connection, however slow it is and however much waits.
    """

    def __init__(self) -> None:
        # The bytes that had left the router for a client, and when that was seen first.
        self._seen: dict[ClientLink, tuple[int, float]] = {}

    def tick(self, links: Iterable[ClientLink], now_s: float, silent_s: float) -> None:
        """Look at all connections, once a second. Close some if too much waits.

        silent_s   seconds in which a client must take a byte of those that wait for it
        """
        seen, waiting = {}, 0
        for link in links:
            if size := link.unread():
                waiting += size
                left, before = link.left(), self._seen.get(link)
                is_silent = before is not None and before[0] == left
                seen[link] = before if before is not None and is_silent else (left, now_s)
        self._seen = seen
        if waiting > MOST_BYTES:
            self._close(waiting - MOST_BYTES, now_s - silent_s, silent_s)

    def _close(self, excess: int, before_s: float, silent_s: float) -> None:
        """Close connections that have been silent since then, the longest silent first."""
        count = freed = 0
        for link, (_, since_s) in sorted(self._seen.items(), key=lambda each: each[1][1]):
            if freed >= excess or since_s >= before_s:
                break
            count += 1
            freed += link.unread()
            link.abort()
        if count:
            logger.warning(
                "%d gRPC clients lost their connections: they took none of %d bytes of their responses "
                "for --client-timeout-secs=%g s, while more than %d bytes waited for all clients",
                count,
                freed,
                silent_s,
                MOST_BYTES,
            )
