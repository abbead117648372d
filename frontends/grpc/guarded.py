"""Methods behind the gate of the server: who calls is known, and within its limits, before they begin."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import replace

from core.access import Credentials, Demand, Gate, Visit, demand
from core.errors import CoreError
from frontends.grpc.call import Call
from frontends.grpc.method import (
    BeginFunction,
    Done,
    Message,
    Method,
    StreamFunction,
    Unary,
    UnaryFunction,
)

_FREE = Visit()


def guarded(method: Method, gate: Gate) -> Method:
    """`method`, for calls that the gate lets in."""
    post = Post(method, gate)
    if isinstance(method, Unary):
        # Both ways into it: an open one beside a guarded one would be no guard.
        begin = None if method.begin is None else _begin(method.begin, post)
        return replace(method, function=_unary(method.function, post), begin=begin)
    return replace(method, function=_stream(method.function, post))


class Post:
    """Where the calls of one method are stopped. Loop thread only."""

    def __init__(self, method: Method, gate: Gate):
        self._gate = gate
        self._looks = demand(method.category, changes=False)
        self._changes = demand(method.category, changes=True)
        self._decides: Callable[[bytes], bool] | None = None
        if isinstance(method.changes, bool):
            if method.changes:
                self._looks = self._changes
        else:
            self._decides = method.changes

    def enter(self, call: Call, request: bytes = b"") -> Visit:
        """Let a call in. Raises Unauthenticated, CoreError(FORBIDDEN) or Exhausted."""
        wanted = self._wanted(request)
        if self._gate.is_free(wanted):
            return _FREE
        visit = self._gate.admit(shown(call), wanted).enter()
        call.caller = visit.caller
        return visit

    def enter_stream(self, call: Call) -> Visit:
        """Let a call in within which requests come. Raises as `enter`."""
        visit = self.enter(call)
        visit.expect(lambda: self._gate.admit(shown(call), self._looks))
        return visit

    def _wanted(self, request: bytes) -> Demand:
        if self._decides is not None and self._decides(request):
            return self._changes
        return self._looks


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


def _unary(function: UnaryFunction, post: Post) -> UnaryFunction:
    async def checked(request: bytes, call: Call) -> bytes:
        visit = post.enter(call, request)
        try:
            return await function(request, call)
        finally:
            visit.leave()

    return checked


def _begin(begin: BeginFunction, post: Post) -> BeginFunction:
    def checked(request: bytes, call: Call, done: Done) -> None:
        try:
            visit = post.enter(call, request)
        except CoreError as error:
            done(error)
            return
        try:
            begin(request, call, Leaving(visit, done))
        except BaseException:  # which no method raises
            visit.leave()
            raise

    return checked


def _stream(function: StreamFunction, post: Post) -> StreamFunction:
    async def checked(requests: AsyncIterator[bytes], call: Call) -> AsyncGenerator[bytes, None]:
        visit = post.enter_stream(call)
        try:
            async with aclosing(function(_counted(requests, visit), call)) as responses:
                async for response in responses:
                    yield response
        finally:
            visit.leave()

    return checked


async def _counted(requests: AsyncIterator[bytes], visit: Visit) -> AsyncIterator[bytes]:
    """The requests of a stream, each of which counts. Raises as Visit.again, which ends the stream."""
    first = True  # it has been counted with the call
    async for request in requests:
        visit.again(counts=not first)
        first = False
        yield request


class Leaving:
    """The `done` of a call that leaves when it is called."""

    def __init__(self, visit: Visit, done: Done):
        self._visit = visit
        self._done = done

    def __call__(self, outcome: Message | CoreError) -> None:
        self._visit.leave()
        self._done(outcome)
