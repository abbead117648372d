"""Interceptors: checks of every call before its service, for HTTP and gRPC.

head of a call ─► [enter]: authenticate, authorize, count ─► ActiveCall ─► service ─► [end]: log

A frontend creates a CallDescription, calls `enter` with it, and ends the ActiveCall when the call is over. It
does neither if nothing needs it: no access policy, no access log, and no plugin that names callers.
"""

from __future__ import annotations

import hmac
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from core.errors import CoreError, Exhausted
from frontends.shared.access import AccessPolicy, ActiveCall, Caller, Credentials, Requirement
from frontends.shared.access.caller_names import CallerNames
from frontends.shared.access.unauthenticated import Unauthenticated
from frontends.shared.access_log import AccessLog
from frontends.shared.context import FrontendContext


class CallDescription(Protocol):
    """A call, independent of its protocol.

    address       of the client, without a port; "unix" for a Unix domain socket
    certificate   name in the certificate that the client has shown; "" for none
    values        returns all values of a header or a metadata key
    """

    @property
    def address(self) -> str: ...
    @property
    def certificate(self) -> str: ...
    def values(self, name: str) -> Sequence[str]: ...


class Restrictions:
    """Calls that need a header with a secret (--http-restricted-api, --grpc-restricted-protocol).

    required   category → (header, secret)
    refusal    returns the error for a call without that header
    """

    def __init__(
        self, required: Mapping[str, tuple[str, str]], refusal: Callable[[str], CoreError]
    ):
        self._required = {key: (name, _bytes(secret)) for key, (name, secret) in required.items()}
        self._refusal = refusal

    def __contains__(self, category: str) -> bool:
        return category in self._required

    def objection(
        self, category: str, value: Callable[[str], str | bytes | None]
    ) -> CoreError | None:
        """Return the error for a call without the right secret in the header of its category.

        Return None for a call that has it, and for a category that requires no header.

        value   returns the value of a header, None if it is absent
        """
        if (required := self._required.get(category)) is None:
            return None
        name, secret = required
        # The duration of compare_digest does not depend on the number of correct bytes.
        if hmac.compare_digest(_bytes(value(name) or ""), secret):
            return None
        return self._refusal(name)


class Interceptors:
    """The checks of one frontend, and its access log. Loop thread only.

    policy       None: every caller may do everything
    access_log   None: calls are not logged
    """

    def __init__(self, context: FrontendContext, *, logged: bool = True):
        self.policy: AccessPolicy | None = context.policy
        self.access_log: AccessLog | None = context.access_log if logged else None
        # None: no plugin asks who sends a request.
        self.names: CallerNames | None = context.names if context.names.wanted else None

    @property
    def needed(self) -> bool:
        """Return whether calls are checked, counted, logged or named. Restrictions do not matter here."""
        return not (self.policy is None and self.access_log is None and self.names is None)

    def enter(self, call: CallDescription, wanted: Requirement | None) -> ActiveCall:
        """Begin a call, and return it: identify its caller, check its roles, count it in the caller's limits.

        wanted   what the caller needs; None for a call that needs no check, such as of an unknown endpoint
        A call that is refused has an `error`; the frontend ends it like any other. Without a policy, or if
        the policy exempts `wanted`, nothing is checked or counted.
        """
        active = ActiveCall()
        if self.policy is None or wanted is None or self.policy.is_exempt(wanted):
            if self.names is not None:
                active.number = self.names.number_of(None, call)
            return active
        try:
            active.caller = self.policy.identify(credentials_of(call))
            self.policy.check(active.caller, wanted)
            if self.names is not None:
                active.number = self.names.number_of(active.caller, call)
            active.begin(active.caller)
            active.renew_with(lambda: self.authorize(call, wanted))
        except CoreError as error:
            active.error = error
        return active

    def authorize(self, call: CallDescription, wanted: Requirement) -> Caller:
        """Identify the caller, check its roles, and return it; the call is not counted. Needs a policy.

        Raises Unauthenticated or CoreError(FORBIDDEN) if the caller may not make the call.
        """
        assert self.policy is not None
        return self.policy.authorize(credentials_of(call), wanted)


def credentials_of(call: CallDescription) -> Credentials:
    """Return the credentials of a call. Raises Unauthenticated if they are malformed."""
    return Credentials.of(
        call.values("authorization"), call.values("x-api-key"), call.address, call.certificate
    )


def caller_of(active: ActiveCall | None, call: CallDescription) -> str:
    """Return text for the audit log: "caller 'NAME' at ADDRESS", or ADDRESS alone for an unknown caller."""
    caller = None if active is None else active.caller
    known = f"{caller.text} at " if caller is not None and caller.known else ""
    return f"{known}{call.address}"


def refusal_headers(error: CoreError) -> Mapping[str, str]:
    """Return the additional headers of an HTTP response with this error (RFC 6750, 3; RFC 9110, 10.2.3).

    Unauthenticated has WWW-Authenticate, and Exhausted Retry-After in seconds; other errors have none.
    """
    if isinstance(error, Unauthenticated):
        reason = ', error="invalid_token"' if error.shown else ""
        return {"WWW-Authenticate": f'Bearer realm="core"{reason}'}
    if isinstance(error, Exhausted):
        return {"Retry-After": str(max(1, math.ceil(error.retry_after_s)))}
    return {}


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")
