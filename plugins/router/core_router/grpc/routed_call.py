"""RoutedCall: a call of a client until its route is known.

ClientLink ─► [RoutedCall] ─► request, whole or its first bytes ─► names ─► Route, or an answer of the router
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core_router.grpc.arriving import STEP
from core_router.grpc.call import Call
from core_router.grpc.messages import plain
from core_router.grpc.native.scan import request_fields
from core_router.grpc.statuses import RESOURCE_EXHAUSTED, UNAVAILABLE
from core_router.targets import Purpose

if TYPE_CHECKING:
    from core_router.choice.sequences import SequenceParameters
    from core_router.grpc.native.link import ClientLink
    from core_router.grpc.port import GrpcPort
    from core_router.servers.table import Route

MOST_UNPACKED = 64 * 1024  # of a compressed message, for its names

_NAMED = (Purpose.INFERENCE, Purpose.MODEL, Purpose.STATISTICS, Purpose.SETTINGS)
_FORWARDED = (Purpose.INFERENCE, Purpose.MODEL, Purpose.ANY, Purpose.OPEN)


class RoutedCall(Call):
    """What a call does before servers get it. Event loop only."""

    def __init__(
        self, port: GrpcPort, link: ClientLink, id: int, head: bytes, purpose: Purpose
    ) -> None:
        Call.__init__(self, port, link, id, head)
        self._purpose = purpose
        self._route: Route | None = None
        self._sequence: SequenceParameters | None = None
        self._is_sent_on = False  # whether it has a server, or waits for one
        self._task: Any = None
        self._failure = ""  # of the last attempt

    def forward(self, route: Route) -> None:
        """Send the request to a server of a route."""
        raise NotImplementedError

    def _route_of_now(self) -> Route:
        """Return the route of the request with the servers of now."""
        target = self._route.target  # type: ignore[union-attr]
        return self._router.table.for_model(target.purpose, target.model, target.version)

    def _collect(self, data: bytes, is_over: bool) -> None:
        """Keep the request until it is whole or large, then find who answers it."""
        is_kept = self._keep(data, is_over) or not data
        if is_over or not is_kept or (data and self._purpose is Purpose.OPEN):
            self._is_sent_on = True
            if self._awaited:
                self._awaited = 0
                self._port.arriving.leave(self)
            self._join()
            self._dispatch()
        elif self._purpose is not Purpose.OPEN:  # another service may let its client begin late
            is_first = bool(data) and self._kept == len(data)  # the time of the head is not its own
            if is_first or self._kept >= self._awaited:
                self._awaited = self._kept + STEP
                self._port.arriving.note(self, self._port.now_s)
            self.link.open_window(self.id)

    def _dispatch(self) -> None:
        purpose, model, version = self._purpose, "", ""
        fields = None
        if purpose in _NAMED:
            fields = request_fields(*plain(self._data, MOST_UNPACKED))
            model, version = fields.model, fields.version
            if purpose is Purpose.SETTINGS:
                # Its first field are settings to change; a request without any only asks.
                purpose, model = (Purpose.EVERY if model else Purpose.ANY), ""
        if purpose not in _FORWARDED:
            if not self._is_whole:
                most = self._router.limits.kept_body_bytes
                self.fail(
                    RESOURCE_EXHAUSTED, f"the message is larger than --kept-body-bytes={most}"
                )
                return
            self._task = self._port.answer(self, purpose, model, self._data)
            return
        route = self._router.table.for_model(purpose, model, version)
        if fields is not None and purpose is Purpose.INFERENCE:
            self._sequence = fields.sequence
        if route.is_known or not self._router.may_look():
            self.forward(route)
        else:
            self._task = self._port.look_and_forward(self, route)

    # refusals -------------------------------------------------------------

    def _refuse(self) -> None:
        """End the call: no server takes it."""
        router, route, failure = self._router, self._route, self._failure
        assert route is not None
        router.metrics.refused += 1
        if self._sequence is not None:
            failure = router.sequences.failure(route, self._sequence) or failure
        status = failure or router.table.status()
        self.fail(UNAVAILABLE, f"no server takes {self._title()}; {status}")

    def _lose_sequence(self) -> None:
        """Forget the sequence, if the request was its start."""
        if self._sequence is not None and self._route is not None:
            self._router.sequences.lost(self._route.target.model, self._sequence)

    def _model(self) -> str:
        return self._route.target.model if self._route is not None else ""

    def _title(self) -> str:
        model = self._model()
        return f"the request for model '{model}'" if model else "the request"
