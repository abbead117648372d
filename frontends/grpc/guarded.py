"""Methods behind the gate of the server: a call is checked when its headers are here.

engine ─► [enter] ─► message ─► method.  Credentials, roles and limits come before the message: the engine
takes nothing of it for a call that is refused. Where the role depends on the message (settings of log and
trace), a caller who may look enters, and the message is decoded only after that.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import replace

from core.errors import CoreError
from frontends.grpc.call import Call
from frontends.grpc.method import EnterFunction, Method, StreamFunction, Unary, UnaryFunction
from frontends.shared.access import AccessPolicy, ActiveCall, Credentials, Requirement, requirement

_FREE = ActiveCall()


def guarded(method: Method, policy: AccessPolicy) -> Method:
    """`method`, for calls that the gate lets in."""
    changes, always = method.changes, method.changes is True
    wanted = requirement(method.category, changes=always)
    enter = _enter(policy, wanted, method.enter)
    if not isinstance(method, Unary):
        return replace(method, function=_stream(method.function, policy, wanted), enter=enter)
    if isinstance(changes, bool):
        return replace(method, enter=enter)
    more = requirement(method.category, changes=True)
    function = _deciding(method.function, policy, more, changes)
    # A way around the check of the message would be no check.
    return replace(method, function=function, begin=None, enter=enter)


def _enter(policy: AccessPolicy, wanted: Requirement, then: EnterFunction | None) -> EnterFunction:
    """What lets calls in. It raises Unauthenticated, CoreError(FORBIDDEN) or Exhausted.

    then   is asked after the policy, and may refuse the call too
    """

    def enter(call: Call) -> ActiveCall:
        active = _FREE
        if not policy.is_exempt(wanted):
            call.caller = policy.identify(shown(call))
            policy.check(call.caller, wanted)
            active = call.caller.begin_call()
        if then is not None:
            try:
                then(call)
            except CoreError:
                active.end()
                raise
        return active

    return enter


def shown(call: Call) -> Credentials:
    """What the metadata of a call shows. Raises Unauthenticated for what is shown in another form."""
    authorizations, keys = [], []
    for name, value in call.metadata:
        if name == "authorization" and isinstance(value, str):
            authorizations.append(value)
        elif name == "x-api-key" and isinstance(value, str):
            keys.append(value)
    return Credentials.of(authorizations, keys, _address(call.peer))


def _address(peer: str) -> str:
    """ipv4:127.0.0.1:40000 → 127.0.0.1; ipv6:[::1]:40000 → ::1; unix: stays."""
    family, _, rest = peer.partition(":")
    if family not in ("ipv4", "ipv6"):
        return family
    # grpcio escapes the brackets.
    host = rest.replace("%5B", "[").replace("%5D", "]").rpartition(":")[0]
    return host.strip("[]")


def _deciding(
    function: UnaryFunction,
    policy: AccessPolicy,
    wanted: Requirement,
    changes: Callable[[bytes], bool],
) -> UnaryFunction:
    """`function` for messages of which some change things, which demands more than to look."""

    async def checked(request: bytes, call: Call) -> bytes:
        if call.caller is not None and changes(request):
            policy.check(call.caller, wanted)
        return await function(request, call)

    return checked


def _stream(function: StreamFunction, policy: AccessPolicy, wanted: Requirement) -> StreamFunction:
    """`function` for a call within which requests come, each of which is checked and counts."""

    async def checked(requests: AsyncIterator[bytes], call: Call) -> AsyncGenerator[bytes, None]:
        active: ActiveCall = call.active
        active.renew_with(lambda: policy.authorize(shown(call), wanted))
        async with aclosing(function(_counted(requests, active), call)) as responses:
            async for response in responses:
                yield response

    return checked


async def _counted(requests: AsyncIterator[bytes], active: ActiveCall) -> AsyncIterator[bytes]:
    """The requests of a stream, each of which counts. Raises as ActiveCall.again, which ends the stream."""
    first = True  # it has been counted with the call
    async for request in requests:
        active.count_request(counts=not first)
        first = False
        yield request
