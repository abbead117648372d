"""ForwardedRequest: one request on its way to a server, or to another one if the first cannot answer.

ClientConnection ─► [ForwardedRequest] ─► choose ─► ServerConnection ─► response ─► ClientConnection
                          ▲                                    │
                          └── not connected, lost, refused ◄───┘
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from core_router.choice.choose import choose_on

if TYPE_CHECKING:
    from core_router.choice.sequences import SequenceParameters
    from core_router.http.client import ClientConnection
    from core_router.http.heads import RequestHead, ResponseHead
    from core_router.http.upstream import ServerConnection
    from core_router.router import Router
    from core_router.servers.server_model import ServerModel
    from core_router.servers.table import Route

_SAFE = (b"GET", b"HEAD", b"OPTIONS")


class ForwardedRequest:
    """One request of a client. Event loop only.

    client      gets the response
    head        of the request
    is_sent     whether its last byte is on its way to the server
    """

    def __init__(
        self,
        router: Router,
        client: ClientConnection,
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
        self._tried: tuple[ServerModel, ...] = ()
        self._server_model: ServerModel | None = None
        self._connection: ServerConnection | None = None
        self._sent_s = 0.0
        self._failure = ""  # of the last attempt
        self._repeats = sequence is None and (route.is_inference or head.method in _SAFE)

    # for the client -------------------------------------------------------

    def start(self, data: bytes, is_whole: bool) -> None:
        """Send the request.

        data       its bytes, or the first of them
        is_whole   whether these are all
        """
        self._data, self._is_whole = data, is_whole
        self.is_sent = is_whole
        self._router.budget.request()
        self._attempt()

    def more(self, data: bytes, is_last: bool) -> None:
        """Send the next bytes of a request that is not whole."""
        self.is_sent = is_last
        if self._connection is not None:
            self._connection.send_more(data)
        else:
            self._data += data  # the client pauses until there is a connection

    def cancel(self) -> None:
        """End the request: the client has left."""
        if self._is_over:
            return
        self._is_over = True
        if self._server_model is not None:
            self._server_model.left()
            self._server_model = None
        if self._connection is not None:
            self._connection.abandon()
            self._connection = None

    def pause(self) -> None:
        """Receive no more of the response until `resume`."""
        if self._connection is not None:
            self._connection.pause_reading()

    def resume(self) -> None:
        if self._connection is not None:
            self._connection.resume_reading()

    # attempts -------------------------------------------------------------

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

    def _may_retry(self) -> bool:
        """Return whether limit and budget permit another attempt, and take it from the budget."""
        return len(self._tried) <= self._router.limits.retries and self._router.budget.take()

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
        self._router.metrics.retries["unsent"] += 1
        self._again()

    def _send(self, connection: ServerConnection) -> None:
        self._connection = connection
        connection.send(self, self._data)
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

    # for ServerConnection -------------------------------------------------

    def moves(self, head: ResponseHead) -> bool:
        """Return whether another server gets the request, after a response that begins with this head.

        A server that refuses has not executed: 503 while it has no place or ends, 404 without the model.
        After True, the caller gives the connection back and calls `move_on`.
        """
        if head.status not in (404, 503):
            self._is_answered = True
            return False
        moves = (
            self._is_whole
            and (self._repeats or (self._sequence is not None and self._sequence.is_start))
            and (head.status == 503 or bool(self._route.target.model and self._route.is_known))
            and _has_untried(self._route.candidates, self._tried)
            and self._may_retry()
        )
        self._is_answered = not moves
        return moves

    def move_on(self, head: ResponseHead) -> None:
        """Send the request to another server, after `moves`."""
        server_model = self._server_model
        assert server_model is not None
        self._connection = self._server_model = None
        self._failure = f"server {server_model.server.name}: status {head.status}"
        now_s = monotonic()
        server_model.done(head.status, now_s - self._sent_s, now_s)
        server_model.server.checks_now.set()
        self._router.metrics.retries["refused"] += 1
        self._again()

    def closes(self, head: ResponseHead) -> bool:
        """Return whether the client's connection ends with this response."""
        return not self.is_sent or self.client.closes(head)

    def complete(self, head: ResponseHead, last: bytes) -> None:
        """Pass on the last bytes of the response."""
        server_model = self._server_model
        assert server_model is not None
        self._is_over = True
        self._connection = self._server_model = None
        now_s = monotonic()
        server_model.done(head.status, now_s - self._sent_s, now_s)
        sequence = self._sequence
        if sequence is not None and sequence.is_end:
            self._router.sequences.end(self._route.target.model, sequence.identifier)
        self.client.complete(last, self.closes(head))

    def lost(
        self, connection: ServerConnection, error: Exception | None, has_response: bool
    ) -> None:
        """Try another server if that cannot execute the request twice, after a connection has ended."""
        if self._is_over:
            return
        self._failed(str(error) if error is not None and str(error) else "the connection ended")
        if has_response:
            self._is_over = True
            self.client.abort()  # the client must not take a part for the whole
        elif self._repeats and self._may_retry():
            self._router.metrics.retries["lost"] += 1
            self._again()
        else:
            self._is_over = True
            self.client.refuse(502, f"{_title(self._route)} was lost: {self._failure}")

    def move(self) -> None:
        """Try another server: this one no longer answers, but its connection is open."""
        connection = self._connection
        if connection is not None and self._repeats and not self._is_answered:
            connection.abandon()
            self.lost(connection, None, False)

    # refusals -------------------------------------------------------------

    def _refuse(self) -> None:
        self._is_over = True
        self._router.metrics.refused += 1
        failure = self._failure
        if self._sequence is not None:
            failure = self._router.sequences.failure(self._route, self._sequence) or failure
        text = f"no server takes {_title(self._route)}; {failure or self._router.table.status()}"
        self.client.refuse(503, text, retry_after_s=1)


def _has_untried(candidates: tuple[ServerModel, ...], tried: tuple[ServerModel, ...]) -> bool:
    return any(each not in tried for each in candidates)


def _title(route: Route) -> str:
    model = route.target.model
    return f"the request for model '{model}'" if model else "the request"
