"""LinkPool: the connections to one server over gRPC, which carry many calls each.

Attempt ─► [LinkPool.take] ─► ServerLink, now or when it is open
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Any

from core_router.grpc.native.link import Receiver, ServerLink

if TYPE_CHECKING:
    from core_router.grpc.port import GrpcPort
    from core_router.servers.server import Server
    from core_router.servers.server_model import ServerModel

logger = logging.getLogger("core_router")

BUSY = 16
"""Calls on each connection from which on there may be another one: workers of a server share connections."""
MOST_LINKS = 8
"""Connections to a server."""
_IDLE_S = 300.0


class Attempt(Receiver):
    """One request at one server, of a call that may make several. Event loop only.

    call             gets the news: `answered`, `lost`, `may_write`, and `connected` or `not_connected`
    server_model     the model there
    link, id         where it is; None, 0 before it is sent
    sent_s           time of the monotonic clock when it began
    head             of the response, until it is passed on
    waits_for_room   whether the client must take bytes before the server may send more
    """

    def __init__(self, call: Any, server_model: ServerModel, now_s: float):
        self.call = call
        self.server_model = server_model
        self.link: ServerLink | None = None
        self.id = 0
        self.sent_s = now_s
        self.head: bytes | None = None
        self.waits_for_room = False

    def received(
        self, head: bytes | None, data: bytes | None, trailers: bytes | None, is_over: bool
    ) -> None:
        self.call.answered(self, head, data, trailers, is_over)

    def gone(self, error: int) -> None:
        self.call.lost(self, error)

    def room(self) -> None:
        self.call.may_write(self)

    def abandon(self, port: GrpcPort) -> None:
        """End the request, without a judgement of its server."""
        self.server_model.left()
        if self.link is not None:
            self.link.cancel(self.id)
        else:
            port.pool_of(self.server_model.server).leave(self)


class LinkPool:
    """The connections to one server. Event loop only.

    links   those that are open
    """

    def __init__(self, server: Server, port: GrpcPort):
        self.server = server
        self.links: list[ServerLink] = []
        self._port = port
        self._waiting: list[Attempt] = []  # for the first connection
        self._opening = 0

    def take(self, attempt: Attempt) -> ServerLink | None:
        """Return the connection with the fewest calls.

        None if none is open: the attempt gets one by `connected`, or the reason by `not_connected`.
        """
        found = None
        least = count = 0
        for link in self.links:
            if link.takes_requests():
                count = link.streams()
                if found is None or count < least:
                    found, least = link, count
        if found is None:
            self._waiting.append(attempt)
            if not self._opening:
                self._open()
        elif least >= BUSY and not self._opening and len(self.links) < MOST_LINKS:
            self._open()
        return found

    def leave(self, attempt: Attempt) -> None:
        """Forget an attempt that waits."""
        if attempt in self._waiting:
            self._waiting.remove(attempt)

    def _open(self) -> None:
        self._opening += 1
        self._port.connect(self)

    # for the port ---------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        """Whether no connection is open, and none is being opened."""
        return not self.links and not self._opening

    def opened(self, link: ServerLink) -> None:
        """Add a connection, and send what waits for it."""
        self._opening -= 1
        if self.server.is_removed and not self._waiting:
            link.close()
            return
        link.used_s = monotonic()
        self.links.append(link)
        waiting, self._waiting = self._waiting, []
        for attempt in waiting:
            _tell(attempt.call.connected, attempt, link)

    def not_opened(self, reason: str) -> None:
        """Have what waits go elsewhere: there is no connection."""
        self._opening -= 1
        waiting, self._waiting = self._waiting, []
        for attempt in waiting:
            _tell(attempt.call.not_connected, attempt, reason)

    def lost(self, link: ServerLink) -> None:
        """Remove a connection that has ended."""
        if link in self.links:
            self.links.remove(link)

    def move_calls(self) -> None:
        """Have other servers answer what may be repeated: this one no longer answers."""
        for link in self.links:
            for attempt in link.receivers():
                _tell(attempt.call.move, attempt)

    def tick(self, now_s: float) -> None:
        """Close connections without calls: idle ones, those that end, those of a removed server."""
        for link in list(self.links):
            if link.streams():
                link.used_s = now_s
            elif (
                not link.takes_requests() or self.server.is_removed or now_s - link.used_s > _IDLE_S
            ):
                self.links.remove(link)
                link.close()

    def close(self) -> None:
        """End all connections; calls on them are lost."""
        for link in list(self.links):
            link.abort()


def _tell(call: Callable[..., None], *given: Any) -> None:
    """Call a function of one call. Its error is logged: the other calls have no part in it."""
    try:
        call(*given)
    except Exception:
        logger.exception("a gRPC call failed")
