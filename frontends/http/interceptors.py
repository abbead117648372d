"""The interceptors of every frontend (frontends/shared/interceptors.py), for requests of HTTP.

    aiohttp ─► [enter] ─► router          fast path ─► [authorize] ─► parse

The fast path takes no request that is refused here: aiohttp gets it, so every refusal comes from one place.
The router checks the restrictions of what aiohttp gets.
"""

from __future__ import annotations

from asyncio import BaseTransport
from collections.abc import Mapping, Sequence

from multidict import CIMultiDict, MultiMapping

from core.errors import CoreError, forbidden
from frontends.http.router import Router
from frontends.shared.access import ActiveCall, Caller, requirement
from frontends.shared.context import FrontendContext
from frontends.shared.interceptors import Interceptors, Restrictions

_INFERENCE = requirement("inference", changes=True)


def restrictions(required: Mapping[str, tuple[str, str]]) -> Restrictions:
    """Return the restrictions of --http-restricted-api."""
    return Restrictions(required, _restricted)


def _restricted(name: str) -> CoreError:
    return forbidden(f"This API is restricted, expecting header '{name}'")


class HttpCallDescription:
    """A request as interceptors see it (frontends.shared.interceptors.CallDescription)."""

    __slots__ = ("_headers", "_transport")

    def __init__(self, headers: MultiMapping[str], transport: BaseTransport | None):
        self._headers = headers
        self._transport = transport

    @property
    def address(self) -> str:
        name = None if self._transport is None else self._transport.get_extra_info("peername")
        return str(name[0]) if isinstance(name, tuple) else "unix"

    def values(self, name: str) -> Sequence[str]:
        return self._headers.getall(name, ())


class HttpInterceptors(Interceptors):
    """The interceptors of one listener. Loop thread only.

    router   knows what a request needs, and the restrictions of --http-restricted-api
    """

    def __init__(self, context: FrontendContext, router: Router, *, logged: bool = True):
        super().__init__(context, logged=logged)
        self._router = router

    @property
    def concern_inference(self) -> bool:
        """Whether the fast path has to ask for requests for inference."""
        return (
            self.policy is not None
            or self.access_log is not None
            or _INFERENCE.category in self._router.restrictions
        )

    def enter_request(
        self, method: str, path: str, headers: MultiMapping[str], transport: BaseTransport | None
    ) -> ActiveCall:
        """Begin a request, as `enter`; path: without its query."""
        wanted = None
        if self.policy is not None:
            wanted = self._router.requirement(method, path, headers)
        return self.enter(HttpCallDescription(headers, transport), wanted)

    def authorize_head(self, head: bytes, transport: BaseTransport) -> Authorization | None:
        """Authorize requests for inference with this head on one connection; None if they are refused.

        head   as native/head.hpp takes it: each field on one line, all of it ASCII
        """
        restricted = self._router.restrictions
        if self.policy is None and _INFERENCE.category not in restricted:
            return _UNCHECKED
        headers: CIMultiDict[str] = CIMultiDict()
        for line in head.decode("ascii").split("\r\n")[1:-2]:
            name, _, value = line.partition(":")
            headers.add(name, value.strip(" \t"))
        if restricted.objection(_INFERENCE.category, headers.get) is not None:
            return None
        if self.policy is None:
            return _UNCHECKED
        try:
            return Authorization(
                self.authorize(HttpCallDescription(headers, transport), _INFERENCE)
            )
        except CoreError:
            return None


class Authorization:
    """Lets in requests whose head is the same but for the sizes in it, on the same connection."""

    __slots__ = ("_caller",)

    def __init__(self, caller: Caller | None):
        self._caller = caller

    def is_valid(self) -> bool:
        """Return whether it still holds."""
        return self._caller is None or self._caller.is_valid()

    def begin_call(self) -> ActiveCall | None:
        """Begin one request; None if its caller has reached a limit."""
        if self._caller is None:
            return ActiveCall()
        try:
            return self._caller.begin_call()
        except CoreError:
            return None


_UNCHECKED = Authorization(None)
