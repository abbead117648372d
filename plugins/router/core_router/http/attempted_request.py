"""AttemptedRequest: one request and the servers that have been tried.

data ─► [AttemptedRequest] ─► choose ─► ServerConnection, idle or new ─► or another server, within a budget
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any

from core_router.choice.choose import choose_on
from core_router.choice.hedging import NO_HEDGE, NoHedge
from core_router.http.hedge import Hedge
from core_router.http.run_twice import may_name_sequence

if TYPE_CHECKING:
    from core_router.choice.sequences import SequenceParameters
    from core_router.http.client import ClientConnection
    from core_router.http.heads import RequestHead
    from core_router.http.upstream import ServerConnection
    from core_router.router import Router
    from core_router.servers.server_model import ServerModel
    from core_router.servers.table import Route

_SAFE = (b"GET", b"HEAD", b"OPTIONS")


class AttemptedRequest:
    """What a ForwardedRequest does before a server answers. Event loop only.

    client      gets the response: a ClientConnection, or the Hedge of which this is the copy
    head        of the request
    is_sent     whether its last byte is on its way to the server
    """

    def __init__(
        self,
        router: Router,
        client: ClientConnection | Hedge,
        head: RequestHead,
        route: Route,
        sequence: SequenceParameters | None = None,
    ):
        self.client = client
        self.head = head
        self.is_sent = False
        self._router = router
        self._route = route
        self._sequence = sequence
        self._data = b""  # the bytes to send; all of them if is_whole
        self._is_whole = False
        self._is_answered = False  # the client has a part of the response
        self._is_over = False
        self._is_paused = (
            False  # the client does not read: whatever connection it has is not read, too
        )
        self._tried: tuple[ServerModel, ...] = ()
        self._server_model: ServerModel | None = None
        self._connection: ServerConnection | None = None
        self._began_s = self._sent_s = 0.0
        self._hedge: Hedge | NoHedge = NO_HEDGE
        self._failure = ""  # of the last attempt
        self._repeats = sequence is None and (route.is_inference or head.method in _SAFE)

    def _attempt(self) -> None:
        """Send the request to a server, or refuse it if there is none."""
        now_s = monotonic()
        if self._sequence is None:
            found = choose_on(self._route, self._tried, now_s)
        else:
            found = self._router.sequences.choose(self._route, self._sequence, self._tried, now_s)
        if found is None:
            self._refuse()
            return
        self._server_model = found
        self._tried = (*self._tried, found)
        self._sent_s = now_s
        found.begin()
        server = found.server
        if server.idle:
            self._send(server.idle.pop())
        else:
            self.client.pause_reading()
            self._router.connect(self, server)

    def _again(self) -> None:
        """Make another attempt, with the servers of now."""
        self._route = self._router.table.route(self._route.target)
        self._attempt()

    def _runs_twice(self, route: Route) -> bool:
        """Return whether two servers may execute the request. Reads its body: not for each request."""
        if not self._repeats or self.head.method in _SAFE:
            return self._repeats
        return route.runs_twice and not may_name_sequence(self.head, self._data)

    def connected(self, connection: ServerConnection) -> None:
        """Send the request on a new connection."""
        if self._is_over:
            connection.used_s = monotonic()
            connection.server.idle.append(connection)
            return
        self.client.resume_reading()
        self._send(connection)

    def not_connected(self, reason: str) -> None:
        """Try another server: nothing was sent to this one."""
        if self._is_over:
            return
        self._failed(reason)
        if self._hedge.take_over():
            return
        self._router.metrics.retries["unsent"] += 1
        # Another server may have an idle connection, for which nobody waits.
        self.client.resume_reading()
        self._again()

    def _send(self, connection: Any) -> None:
        """Send the request on a ServerConnection, which takes ForwardedRequests only."""
        self._connection = connection
        connection.send(self, self._data)
        if self._is_paused:
            connection.pause_reading()
        if not self._is_whole:
            self._data = b""
            self._repeats = False

    def _failed(self, text: str) -> None:
        """Count the failure of an attempt."""
        server_model = self._server_model
        assert server_model is not None
        self._connection = self._server_model = None
        self._failure = f"server {server_model.server.name}: {text}"
        server_model.failed(monotonic())
        server_model.server.checks_now.set()

    def _refuse(self) -> None:
        self._is_over = True
        if not isinstance(self.client, Hedge):
            self._router.metrics.refused += 1
        failure = self._failure
        if self._sequence is not None:
            failure = self._router.sequences.failure(self._route, self._sequence) or failure
        text = f"no server takes {title_of(self._route)}; {failure or self._router.table.status()}"
        self.client.refuse(503, text, retry_after_s=1)


def title_of(route: Route) -> str:
    """Return a request's name in errors."""
    model = route.target.model
    return f"the request for model '{model}'" if model else "the request"
