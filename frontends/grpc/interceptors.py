"""The interceptors of every frontend (frontends/shared/interceptors.py), for methods of gRPC.

engine ─► enter (headers) ─► received (message) ─► method ─► GrpcCall.end (status) ─► line of the access log

The engine takes nothing of the message of a call that `enter` refuses. Where the role depends on the message
(settings of log and trace), a caller that may look enters, and the message is decoded only after that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from core.control import called_by
from core.errors import CoreError, unavailable
from frontends.grpc.access_log import entry_for, entry_of
from frontends.grpc.call import GrpcCall
from frontends.grpc.method import Method, ReceivedFunction, UnaryFunction, UnaryMethod
from frontends.shared.access import AccessPolicy, ActiveCall, Requirement, requirement
from frontends.shared.access_log import AccessLog
from frontends.shared.interceptors import Interceptors, Restrictions, caller_of

PREFIX = "triton-grpc-protocol-"


def restrictions(required: dict[str, tuple[str, str]]) -> Restrictions:
    prefixed = {category: (PREFIX + key, secret) for category, (key, secret) in required.items()}
    return Restrictions(prefixed, _restricted)


def _restricted(name: str) -> CoreError:
    return unavailable(f"This protocol is restricted, expecting header '{name}'")


class GrpcCallDescription:
    """A call as interceptors see it (frontends.shared.interceptors.CallDescription)."""

    __slots__ = ("_call",)

    def __init__(self, call: GrpcCall):
        self._call = call

    @property
    def certificate(self) -> str:
        return self._call.certificate

    @property
    def address(self) -> str:
        """Return the client's address without family and port, for a Unix domain socket "unix".

        ipv4:127.0.0.1:40000 → 127.0.0.1; ipv6:[::1]:40000 → ::1; unix:/path → unix.
        """
        family, _, rest = self._call.peer.partition(":")
        if family not in ("ipv4", "ipv6"):
            return family
        # grpcio escapes the brackets.
        return rest.replace("%5B", "[").replace("%5D", "]").rpartition(":")[0].strip("[]")

    def values(self, name: str) -> Sequence[str]:
        return [v for key, v in self._call.metadata if key == name and isinstance(v, str)]


def intercepted(method: Method, interceptors: Interceptors, restricted: Restrictions) -> Method:
    """Return `method` with the interceptors that concern it; `method` itself if there are none.

    Its `enter` checks the caller and the header that --grpc-restricted-protocol requires; with an access log,
    `received` adds messages to the log entry. Where the role depends on the message, `function` checks that.
    If a plugin asks for callers, `enter` names those of inference requests.
    """
    log, policy = interceptors.access_log, interceptors.policy
    if (
        isinstance(method, UnaryMethod)
        and policy is not None
        and not isinstance(method.changes, bool)
    ):
        changing = requirement(method.category, changes=True)
        function = _checked(method.function, policy, changing, method.changes)
        # `begin` would be a way around the check of the message.
        method = replace(method, function=function, begin=None)
    if log is not None:
        method = replace(method, received=_received(method, log))
    names = interceptors.names is not None and method.category == "inference"
    checks = policy is not None or names or method.category in restricted
    if not checks and (log is None or isinstance(method, UnaryMethod)):
        return method
    path, streams, category = method.path, not isinstance(method, UnaryMethod), method.category
    wanted = requirement(category, changes=method.changes is True)

    def enter(call: GrpcCall) -> ActiveCall:
        active = call.active = interceptors.enter(GrpcCallDescription(call), wanted)
        error = active.error or restricted.objection(category, call.value)
        if log is not None and (streams or error is not None):
            active.record(log, entry_of(call, path))
        if error is not None:
            raise error
        return active

    return replace(method, enter=enter)


def naming_caller(function: UnaryFunction) -> UnaryFunction:
    """Return a function that calls `function`; the audit then records its changes with the caller's name."""

    async def named(request: bytes, call: GrpcCall) -> bytes:
        with called_by(caller_of(call.active, GrpcCallDescription(call))):
            return await function(request, call)

    return named


def _received(method: Method, log: AccessLog) -> ReceivedFunction:
    """Return what is called with each message of a call, for the access log.

    For a unary method, it begins the entry with the message's fields; for a stream, it counts the bytes.
    """
    path = method.path
    if not isinstance(method, UnaryMethod):
        return _count_bytes

    def received(call: GrpcCall, message: bytes) -> None:
        if call.active is None:
            call.active = ActiveCall()
        call.active.record(log, entry_for(call, path, message))

    return received


def _count_bytes(call: GrpcCall, message: bytes) -> None:
    call.active.entry.bytes_in += len(message)


def _checked(
    function: UnaryFunction,
    policy: AccessPolicy,
    changing: Requirement,
    changes: Callable[[bytes], bool],
) -> UnaryFunction:
    """Return a function that calls `function`, but first checks the caller's roles if the message changes
    something.

    changing   roles that such a message needs
    """

    async def checked(request: bytes, call: GrpcCall) -> bytes:
        if call.active.caller is not None and changes(request):
            policy.check(call.active.caller, changing)
        return await function(request, call)

    return checked
