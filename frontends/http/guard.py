"""Guard: what every request goes past before anything else looks at it.

    aiohttp ─► [enter] ─► router          lane ─► [ticket] ─► parse

Its rules are those of the server's gate, and --http-restricted-api for requests that a lane takes: of the
others the router knows the restrictions. A lane leaves what it may not take to aiohttp, so there is one place
from which refusals come.
"""

from __future__ import annotations

from asyncio import BaseTransport

from multidict import CIMultiDict, MultiMapping

from core.access import Demand, Gate, Pass, Visit, demand
from core.errors import CoreError
from frontends.access import Headers, address_of, shown
from frontends.http.router import Router

_FREE = Visit()
_INFERENCE = demand("inference", changes=True)


class Guard:
    """Of one port. Loop thread only.

    gate     None: anybody may do anything
    router   knows what a request demands, and the restrictions of --http-restricted-api
    """

    def __init__(self, gate: Gate | None, router: Router):
        self._gate = gate
        self._router = router

    def enter(
        self,
        method: str,
        path: str,
        headers: MultiMapping[str],
        transport: BaseTransport | None,
    ) -> Visit:
        """Let a request in. Raises Unauthenticated, CoreError(FORBIDDEN) or Exhausted.

        path   without its query; one that is no route's is let in, to be told that
        """
        gate, wanted = self._gate, self._router.demanded(method, path, headers)
        if gate is None or wanted is None or gate.is_free(wanted):
            return _FREE
        visit = self._admitted(gate, headers, transport, wanted).enter()
        # A WebSocket has more requests.
        visit.expect(lambda: self._admitted(gate, headers, transport, wanted))
        return visit

    def ticket(self, head: bytes, transport: BaseTransport) -> Ticket | None:
        """What the lane lets in requests for inference with, as long as it holds; None for none.

        head   of such a request, as native/head.hpp takes it: each field on one line, all of it ASCII
        """
        headers: CIMultiDict[str] = CIMultiDict()
        for line in head.decode("ascii").split("\r\n")[1:-2]:
            name, _, value = line.partition(":")
            headers.add(name, value.strip(" \t"))
        if self._router.restrictions.refuse(_INFERENCE.category, headers) is not None:
            return None
        if self._gate is None:
            return Ticket(None)
        try:
            return Ticket(self._admitted(self._gate, headers, transport, _INFERENCE))
        except CoreError:
            return None

    @staticmethod
    def _admitted(
        gate: Gate, headers: Headers, transport: BaseTransport | None, wanted: Demand
    ) -> Pass:
        return gate.admit(shown(headers, address_of(transport)), wanted)


class Ticket:
    """Lets in requests whose head is the same but for the sizes that it names, on the same connection."""

    __slots__ = ("_caller",)

    def __init__(self, caller: Pass | None):
        self._caller = caller

    def holds(self) -> bool:
        """Whether it is still one."""
        return self._caller is None or self._caller.holds()

    def visit(self) -> Visit | None:
        """For one request; None for a caller that has done as much as it may."""
        if self._caller is None:
            return _FREE
        try:
            return self._caller.enter()
        except CoreError:
            return None
