"""UnaryCall: one call of a client with one server at a time, or another one if the first cannot answer.

ClientLink ─► [UnaryCall] ─► choose ─► Attempt ─► ServerLink ─► server
                  ▲                       │
                  └── lost, UNAVAILABLE ◄─┘

Calls of other services pass, too: as bytes in both directions, until the server ends them.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from core_router.choice.choose import choose_on
from core_router.choice.hedging import NO_HEDGE, NoHedge
from core_router.grpc.hedge import Hedge, fails
from core_router.grpc.messages import may_have, plain
from core_router.grpc.native.blocks import field, status_of
from core_router.grpc.native.scan import request_fields
from core_router.grpc.pool import Attempt
from core_router.grpc.routed_call import MOST_UNPACKED, RoutedCall
from core_router.grpc.statuses import (
    DEADLINE_EXCEEDED,
    HEAD,
    NO_STATUS,
    NOT_FOUND,
    REFUSED_STREAM,
    UNAVAILABLE,
    as_http,
    seconds_of,
    timeout_of,
)
from core_router.targets import Purpose

if TYPE_CHECKING:
    from core_router.grpc.native.link import ClientLink, ServerLink
    from core_router.grpc.port import GrpcPort
    from core_router.servers.server_model import ServerModel
    from core_router.servers.table import Route


class UnaryCall(RoutedCall):
    """One call. Event loop only."""

    def __init__(
        self, port: GrpcPort, link: ClientLink, id: int, head: bytes, purpose: Purpose
    ) -> None:
        RoutedCall.__init__(self, port, link, id, head, purpose)
        self._repeats = False
        self._attempt: Attempt | None = None
        self._tried: tuple[ServerModel, ...] = ()
        self._deadline_s = self._began_s = 0.0
        self._hedge: Hedge | NoHedge = NO_HEDGE

    # for the client -------------------------------------------------------

    def received(
        self, head: bytes | None, data: bytes | None, trailers: bytes | None, is_over: bool
    ) -> None:
        if self._is_over:
            return
        if not self._is_sent_on:
            self._collect(data or b"", is_over)
            return
        attempt = self._attempt
        if attempt is None or attempt.link is None:
            # The window stays closed until there is a connection.
            self._append(data or b"", is_over)
            return
        if data is not None and attempt.link.write(attempt.id, data):
            self.link.open_window(self.id)
        if is_over:
            # What was sent is not kept, so that the request is not whole.
            attempt.link.finish(attempt.id, None)

    def gone(self, error: int) -> None:
        """End the call: the client has cancelled it, or has left."""
        if self._is_over:
            return
        if self._attempt is not None:
            self._attempt.abandon(self._port)
        if self._task is not None:
            self._task.cancel()
        self._attempt = self._task = None
        self._hedge.end()
        self._end()

    def room(self) -> None:
        attempt = self._attempt
        if attempt is not None and attempt.waits_for_room and attempt.link is not None:
            attempt.waits_for_room = False
            attempt.link.open_window(attempt.id)

    # the server of the request --------------------------------------------

    def forward(self, route: Route) -> None:
        """Send the request to a server of a route."""
        self._route = route
        self._task = None
        self._repeats = self._sequence is None and self._purpose is not Purpose.OPEN
        timeout = field(self.head, b"grpc-timeout")
        if timeout is not None:
            self._deadline_s = monotonic() + seconds_of(timeout)
        self._router.budget.request()
        self._try()
        if self._router.hedging is not None and self._attempt is not None:
            self._begin_hedge(self._attempt, route.target.model)

    def _try(self) -> None:
        """Send the request to a server, or refuse it if there is none."""
        now_s = monotonic()
        route = self._route
        assert route is not None
        if self._sequence is None:
            found = choose_on(route, self._tried, now_s)
        else:
            found = self._router.sequences.choose(route, self._sequence, self._tried, now_s)
        if found is None:
            self._refuse()
            return
        if self._tried and self._deadline_s and now_s >= self._deadline_s:
            self._lose_sequence()
            self.fail(DEADLINE_EXCEEDED, f"no time is left for another server; {self._failure}")
            return
        attempt = Attempt(self, found, now_s)
        self._attempt = attempt
        self._tried = (*self._tried, found)
        found.begin()
        link = self._port.pool_of(found.server).take(attempt)
        if link is not None:
            self.send(attempt, link)

    def connected(self, attempt: Attempt, link: ServerLink) -> None:
        """Send the request on a connection that is open now."""
        if attempt is self._attempt:
            self.send(attempt, link)

    def not_connected(self, attempt: Attempt, reason: str) -> None:
        """Try another server: nothing was sent to this one."""
        if attempt is self._attempt:
            self._failed(attempt, reason)
            if self._hedge.take_over():
                return
            self._router.metrics.retries["unsent"] += 1
            self._again()

    def send(self, attempt: Attempt, link: ServerLink) -> None:
        """Send the request, or a copy of it."""
        timeout = b""
        if len(self._tried) > 1 and self._deadline_s:
            timeout = timeout_of(self._deadline_s - monotonic())
        attempt.id = link.request(self.head, timeout, attempt)
        if attempt.id < 0:
            attempt.call.not_connected(attempt, "the connection has ended")
            return
        attempt.link = link
        self._join()
        has_room = link.write(attempt.id, self._data)
        if self._is_whole:
            link.finish(attempt.id, None)
        else:
            self._release()
            self._repeats = False
            if has_room:
                self.link.open_window(self.id)

    def may_write(self, attempt: Attempt) -> None:
        """Let the client send more: the server has taken what there was."""
        self.link.open_window(self.id)

    # for attempts ---------------------------------------------------------

    def answered(
        self,
        attempt: Attempt,
        head: bytes | None,
        data: bytes | None,
        trailers: bytes | None,
        is_over: bool,
    ) -> None:
        """Pass on what a server has sent, or have another server answer."""
        if attempt is not self._attempt:
            return
        status = -1
        if is_over:
            status = status_of(trailers if trailers is not None else head or attempt.head)
        link = self.link
        if not self._has_responded:
            if head is not None:
                attempt.head = head
            if data is None:
                if not is_over:
                    return  # what follows decides
                if self._hedge.is_sent and fails(status):
                    now_s = monotonic()
                    attempt.server_model.done(as_http(status), now_s - attempt.sent_s, now_s)
                    self._attempt = None
                    self._hedge.take_over()
                    return
                self._hedge.end()
                if status in (UNAVAILABLE, NOT_FOUND) and self._moves(attempt, status):
                    return
            if self._router.hedging is not None:
                self._hedge.end()
                if self._began_s and status <= 0:
                    model, duration_s = self._model(), monotonic() - self._began_s
                    self._router.hedging.answered(model, duration_s)
            self._has_responded = True
            found = attempt.head if attempt.head is not None else HEAD
            link.respond(self.id, found, is_over and data is None and trailers is None)
            attempt.head = None
        if data is not None:
            if link.write(self.id, data):
                if not is_over and attempt.link is not None:
                    attempt.link.open_window(attempt.id)
            else:
                attempt.waits_for_room = True
        if is_over:
            if trailers is not None:
                link.finish(self.id, trailers)
            elif data is not None:
                link.finish(self.id, NO_STATUS)
            now_s = monotonic()
            attempt.server_model.done(as_http(status), now_s - attempt.sent_s, now_s)
            sequence = self._sequence
            if sequence is not None and self._route is not None:
                is_good = as_http(status) < 400
                self._router.sequences.answered(self._route.target.model, sequence, is_good)
            self._attempt = None
            self._end()

    def lost(self, attempt: Attempt, error: int) -> None:
        """Try another server if that cannot execute the request twice, after its stream has ended."""
        if attempt is not self._attempt:
            return
        self._failed(attempt, f"the connection ended ({error})" if error else "the call ended")
        if self._has_responded:
            self._lose_sequence()
            self.fail(UNAVAILABLE, f"{self._title()} was lost: {self._failure}")
        elif self._hedge.take_over():
            return
        elif error == REFUSED_STREAM and self._is_whole and len(self._tried) <= 8:
            self._router.metrics.retries["unsent"] += 1
            self._again()
        elif self._runs_twice() and self._router.may_retry(len(self._tried)):
            self._router.metrics.retries["lost"] += 1
            self._again()
        else:
            self._lose_sequence()
            self.fail(UNAVAILABLE, f"{self._title()} was lost: {self._failure}")

    def move(self, attempt: Attempt) -> None:
        """Try another server: this one no longer answers, but its connection is open."""
        goes_on = attempt is self._attempt and not self._has_responded
        if goes_on and (self._hedge.is_sent or self._runs_twice()):
            if attempt.link is not None:
                attempt.link.cancel(attempt.id)
            self.lost(attempt, 0)

    def _moves(self, attempt: Attempt, status: int) -> bool:
        """Have another server answer after a status, if it is safe. Return whether one does.

        A server that refuses has not executed: UNAVAILABLE while it has no place or ends, NOT_FOUND without
        the model.
        """
        route, sequence = self._route, self._sequence
        assert route is not None
        moves = (
            self._is_whole
            and (self._repeats or (sequence is not None and sequence.is_start))
            and (status == UNAVAILABLE or bool(route.target.model and route.is_known))
            and any(each not in self._tried for each in route.candidates)
            and self._router.may_retry(len(self._tried))
        )
        if moves:
            server_model = attempt.server_model
            self._attempt = None
            self._failure = f"server {server_model.server.name}: status {status}"
            now_s = monotonic()
            server_model.done(as_http(status), now_s - attempt.sent_s, now_s)
            server_model.server.checks_now.set()
            self._router.metrics.retries["refused"] += 1
            self._again()
        return moves

    def _again(self) -> None:
        """Make another attempt, with the servers of now."""
        self._route = self._route_of_now()
        self._try()

    def _runs_twice(self) -> bool:
        """Return whether two servers may execute the request. Reads it: not for each one."""
        if not self._repeats or self._purpose is not Purpose.INFERENCE:
            return self._repeats
        found = request_fields(*plain(self._data, MOST_UNPACKED))
        return self._route is not None and self._route.runs_twice and found.sequence is None

    def _failed(self, attempt: Attempt, text: str) -> None:
        """Count the failure of an attempt."""
        server_model = attempt.server_model
        self._attempt = None
        self._failure = f"server {server_model.server.name}: {text}"
        server_model.failed(monotonic())
        server_model.server.checks_now.set()

    # a second copy --------------------------------------------------------

    def _begin_hedge(self, attempt: Attempt, model: str) -> None:
        hedging, route = self._router.hedging, self._route_of_now()
        if hedging is None or not self._is_whole or not (self._repeats and route.has_copies):
            return
        self._began_s = attempt.sent_s
        delay_s = hedging.begin(model)
        if delay_s:
            self._hedge = Hedge(self._port, self, hedging, delay_s)

    def may_be_copied(self) -> bool:
        """Return whether one of the servers of now may get a copy."""
        route = self._route_of_now()
        return (
            route.has_copies
            and any([each not in self._tried for each in route.candidates])
            and self._runs_twice()
            and not may_have(self._data, b"shared_memory_region", MOST_UNPACKED)
        )

    def copy_for(self, hedge: Hedge) -> Attempt:
        """Send a copy to another server, whose response the hedge gets. Call `may_be_copied` first."""
        now_s = monotonic()
        found = choose_on(self._route_of_now(), self._tried, now_s)
        assert found is not None
        attempt = Attempt(hedge, found, now_s)
        self._tried = (*self._tried, found)
        found.begin()
        link = self._port.pool_of(found.server).take(attempt)
        if link is not None:
            self.send(attempt, link)
        return attempt

    def replace(self, attempt: Attempt) -> None:
        """Go on with the attempt of a copy, in place of the first one."""
        if self._attempt is not None:
            self._attempt.abandon(self._port)
        self._attempt = attempt
        attempt.call = self
