"""ForwardedRequest: one request on its way to a server, or to another one if the first cannot answer.

ClientConnection ─► [ForwardedRequest] ─► choose ─► ServerConnection ─► response ─► ClientConnection
                          ▲                                    │
                          └── not connected, lost, refused ◄───┘
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from core_router.http.attempted_request import AttemptedRequest, title_of
from core_router.http.hedge import Hedge, fails
from core_router.http.run_twice import names_shared_memory, streams

if TYPE_CHECKING:
    from core_router.http.client import ClientConnection
    from core_router.http.heads import ResponseHead
    from core_router.http.upstream import ServerConnection
    from core_router.servers.server_model import ServerModel


class ForwardedRequest(AttemptedRequest):
    """One request of a client. Event loop only."""

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
        if self._router.hedging is not None and self._repeats and not self._is_over:
            self._begin_hedge()

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
        self._hedge.end()

    def pause(self) -> None:
        """Receive no more of the response until `resume`."""
        self._is_paused = True
        if self._connection is not None:
            self._connection.pause_reading()

    def resume(self) -> None:
        self._is_paused = False
        if self._connection is not None:
            self._connection.resume_reading()

    # a second copy --------------------------------------------------------

    def _begin_hedge(self) -> None:
        hedging, client = self._router.hedging, self.client
        if not self._is_whole or len(self._data) > self._router.limits.kept_body_bytes:
            return  # a larger one is kept only because it names its model
        if not self._route.has_copies or streams(self.head, self._data):
            return
        assert hedging is not None and not isinstance(client, Hedge)
        self._began_s = self._sent_s
        delay_s = hedging.begin(self._route.target.model)
        if delay_s:
            self._hedge = Hedge(hedging, self, client, delay_s)

    def may_be_copied(self) -> bool:
        """Return whether one of the servers of now may get a copy."""
        route = self._router.table.route(self._route.target)
        return (
            route.has_copies
            and _has_untried(route.candidates, self._tried)
            and self._runs_twice(route)
            and not names_shared_memory(self.head, self._data)
        )

    def copy_for(self, hedge: Hedge) -> ForwardedRequest:
        """Send a copy to another server, whose response the hedge gets. Call `may_be_copied` first."""
        route = self._router.table.route(self._route.target)
        copy = ForwardedRequest(self._router, hedge, self.head, route)
        copy._data, copy._is_whole, copy.is_sent = self._data, True, True
        copy._repeats = False  # if it fails, the first one goes on
        copy._began_s, copy._tried = self._began_s, self._tried
        copy._attempt()
        self._tried = copy._tried
        return copy

    def replace(self, first: ForwardedRequest, client: ClientConnection) -> None:
        """Be the only one, in place of the request of which this is the copy."""
        self.client, self._repeats = client, True
        first.cancel()
        client.request = self
        if first._is_paused:
            self.pause()

    # for ServerConnection -------------------------------------------------

    def moves(self, head: ResponseHead) -> bool:
        """Return whether another server gets the request, after a response that begins with this head.

        A server that refuses has not executed: 503 while it has no place or ends, 404 without the model.
        After True, the caller gives the connection back and calls `move_on`.
        """
        if self._router.hedging is not None:
            if self._hedge.is_sent and fails(head.status):
                return True
            self._hedge.end()
            if self._began_s and head.status < 400:
                duration_s = monotonic() - self._began_s
                self._router.hedging.answered(self._route.target.model, duration_s)
        if head.status not in (404, 503):
            self._is_answered = True
            return False
        moves = (
            self._is_whole
            and (self._repeats or (self._sequence is not None and self._sequence.is_start))
            and (head.status == 503 or bool(self._route.target.model and self._route.is_known))
            and _has_untried(self._route.candidates, self._tried)
            and self._router.may_retry(len(self._tried))
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
        if self._hedge.take_over():
            return
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
        if self._sequence is not None:
            self._router.sequences.answered(
                self._route.target.model, self._sequence, head.status < 400
            )
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
            self._lose_sequence()
            self.client.abort()  # the client must not take a part for the whole
        elif self._hedge.take_over():
            return
        elif self._runs_twice(self._route) and self._router.may_retry(len(self._tried)):
            self._router.metrics.retries["lost"] += 1
            self._again()
        else:
            self._is_over = True
            self._lose_sequence()
            self.client.refuse(502, f"{title_of(self._route)} was lost: {self._failure}")

    def _lose_sequence(self) -> None:
        if self._sequence is not None:
            self._router.sequences.lost(self._route.target.model, self._sequence)

    def move(self) -> None:
        """Try another server: this one no longer answers, but its connection is open."""
        connection, client = self._connection, self.client
        if connection is None or self._is_answered:
            return
        if isinstance(client, Hedge):
            connection.abandon()
            self._failed("it no longer answers")
            self._is_over = True
            client.abort()  # the first request goes on
        elif self._hedge.is_sent or self._runs_twice(self._route):
            connection.abandon()
            self.lost(connection, None, False)


def _has_untried(candidates: tuple[ServerModel, ...], tried: tuple[ServerModel, ...]) -> bool:
    return any(each not in tried for each in candidates)
