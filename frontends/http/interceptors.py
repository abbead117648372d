"""HTTP adapter of the interceptors of every frontend (frontends/shared/interceptors.py).

    aiohttp ─► [enter] ─► router          fast path ─► [authorize] ─► parse

The fast path passes a request that is refused here to aiohttp, so every refusal comes from one place.
The router checks the restrictions of requests on aiohttp.
"""

from __future__ import annotations

from asyncio import BaseTransport
from collections.abc import Mapping, Sequence

from multidict import CIMultiDict, MultiMapping

from core.errors import CoreError, forbidden
from frontends.http.cors import is_preflight
from frontends.http.router import Router
from frontends.shared.access import ActiveCall, Caller, requirement
from frontends.shared.access.certificates import certificate_name
from frontends.shared.context import FrontendContext
from frontends.shared.interceptors import Interceptors, Restrictions

_INFERENCE = requirement("inference", changes=True)


def restrictions(required: Mapping[str, tuple[str, str]]) -> Restrictions:
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

    @property
    def certificate(self) -> str:
        if self._transport is None:
            return ""
        return certificate_name(self._transport.get_extra_info("peercert"))

    def values(self, name: str) -> Sequence[str]:
        return self._headers.getall(name, ())


class HttpInterceptors(Interceptors):
    """The interceptors of one HttpListener. Not thread-safe: call from the event loop only.

    router       knows the requirements of each request, and the restrictions of --http-restricted-api
    preflights   whether the listener answers preflights, which have no credentials
    """

    def __init__(
        self,
        context: FrontendContext,
        router: Router,
        *,
        logged: bool = True,
        preflights: bool = False,
    ):
        super().__init__(context, logged=logged)
        self._router = router
        self._preflights = preflights

    @property
    def concern_inference(self) -> bool:
        """Return whether the fast path must use these interceptors for inference requests.

        It must with an access policy, with an access log, if inference is restricted, and if a plugin asks
        who sends a request.
        """
        return (
            self.policy is not None
            or self.names is not None
            or self.access_log is not None
            or _INFERENCE.category in self._router.restrictions
        )

    def enter_request(
        self, method: str, path: str, headers: MultiMapping[str], transport: BaseTransport | None
    ) -> ActiveCall:
        """Begin a request and return it: check it and count it as `enter` does, with a refusal in `error`.

        path   without its query
        A preflight is not checked if the listener answers preflights; nor is an open or unknown path.
        """
        wanted = None
        if self.policy is not None and not (self._preflights and is_preflight(method, headers)):
            wanted = self._router.requirement(method, path, headers)
        return self.enter(HttpCallDescription(headers, transport), wanted)

    def authorize_head(self, head: bytes, transport: BaseTransport) -> Authorization | None:
        """Return what permits inference requests with this head on one connection.

        None if they are refused, or if the tokens of their caller are limited.
        head   in the form that native/head.hpp accepts: each field on one line, all of it ASCII
        """
        restricted = self._router.restrictions
        names = self.names
        if self.policy is None and names is None and _INFERENCE.category not in restricted:
            return _UNCHECKED
        headers: CIMultiDict[str] = CIMultiDict()
        for line in head.decode("ascii").split("\r\n")[1:-2]:
            name, _, value = line.partition(":")
            headers.add(name, value.strip(" \t"))
        if restricted.objection(_INFERENCE.category, headers.get) is not None:
            return None
        call = HttpCallDescription(headers, transport)
        caller: Caller | None = None
        if self.policy is not None:
            try:
                caller = self.authorize(call, _INFERENCE)
            except CoreError:
                return None
            if caller.allowance is not None and caller.allowance.usage is not None:
                return None  # the fast path counts no tokens
        return Authorization(caller, 0 if names is None else names.number_of(caller, call))


class Authorization:
    """Permits requests on the same connection whose head is equal except for the sizes in it.

    caller   in whose limits they count; None without an access policy
    number   of the caller, for plugins; 0 for none
    """

    __slots__ = ("_caller", "_number")

    def __init__(self, caller: Caller | None, number: int = 0):
        self._caller = caller
        self._number = number

    def is_valid(self) -> bool:
        return self._caller is None or self._caller.is_valid()

    def begin_call(self) -> ActiveCall | None:
        """Begin one request; return None if its caller has reached a limit."""
        active = ActiveCall()
        active.number = self._number
        if self._caller is None:
            return active
        try:
            active.begin(self._caller)
        except CoreError:
            return None
        return active


_UNCHECKED = Authorization(None)
