"""Guard: what every request goes past before anything else looks at it.

    aiohttp ─► [enter] ─► router          lane ─► [ticket] ─► parse

Its rules are those of the server's policy, and --http-restricted-api for requests that a lane takes: of the
others the router knows the restrictions. A lane leaves what it may not take to aiohttp, so there is one place
from which refusals come.
"""

from __future__ import annotations

from asyncio import BaseTransport

from multidict import CIMultiDict, MultiMapping

from core.errors import CoreError
from frontends.access import Headers, address_of, shown
from frontends.http.router import Router
from frontends.shared.access import AccessPolicy, ActiveCall, Caller, Requirement, requirement

_FREE = ActiveCall()
_INFERENCE = requirement("inference", changes=True)


class Guard:
    """Of one port. Loop thread only.

    policy   None: every caller may do everything
    router   knows what a request demands, and the restrictions of --http-restricted-api
    """

    def __init__(self, policy: AccessPolicy | None, router: Router):
        self._policy = policy
        self._router = router

    def enter(
        self,
        method: str,
        path: str,
        headers: MultiMapping[str],
        transport: BaseTransport | None,
    ) -> ActiveCall:
        """Let a request in. Raises Unauthenticated, CoreError(FORBIDDEN) or Exhausted.

        path   without its query; one that is no route's is let in, to be told that
        """
        policy, wanted = self._policy, self._router.demanded(method, path, headers)
        if policy is None or wanted is None or policy.is_exempt(wanted):
            return _FREE
        active = self._admitted(policy, headers, transport, wanted).begin_call()
        # A WebSocket has more requests.
        active.renew_with(lambda: self._admitted(policy, headers, transport, wanted))
        return active

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
        if self._policy is None:
            return Ticket(None)
        try:
            return Ticket(self._admitted(self._policy, headers, transport, _INFERENCE))
        except CoreError:
            return None

    @staticmethod
    def _admitted(
        policy: AccessPolicy, headers: Headers, transport: BaseTransport | None, wanted: Requirement
    ) -> Caller:
        return policy.authorize(shown(headers, address_of(transport)), wanted)


class Ticket:
    """Lets in requests whose head is the same but for the sizes that it names, on the same connection."""

    __slots__ = ("_caller",)

    def __init__(self, caller: Caller | None):
        self._caller = caller

    def is_valid(self) -> bool:
        """Whether it is still one."""
        return self._caller is None or self._caller.is_valid()

    def begin_call(self) -> ActiveCall | None:
        """For one request; None for a caller that has done as much as it may."""
        if self._caller is None:
            return _FREE
        try:
            return self._caller.begin_call()
        except CoreError:
            return None
