"""HttpRequest and HttpResponse: the input and output of a service, without types of any engine."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from core.config.model_version import parse_version
from core.errors import CoreError
from core.request import InferenceRequest
from core.telemetry.tracing import Trace
from core.tensor import Buffer
from frontends.http.codec.timeout import timeout_ns
from frontends.http.request_share import RequestShare, boundless

if TYPE_CHECKING:
    from frontends.http.native.event_stream import PartWriter
    from frontends.shared.access import ActiveCall, Caller
    from frontends.shared.call_observers import CallObservation
    from frontends.shared.usage_meter import UsageMeter

JSON_HEADERS = {"Content-Type": "application/json"}
TEXT_HEADERS = {"Content-Type": "text/plain"}
EVENT_HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",  # a proxy that collects events would delay each one
}
"""Of a response whose rest is events that no cache may keep. See `encoded_event`."""


def encoded_event(name: str, data: bytes) -> bytes:
    """Return an event with a name, in the form text/event-stream. `data` has one line."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), data)


class EndsEarly(Protocol):
    """Responses that can be ended while their client waits, such as core.response.Reply."""

    def end(self, error: CoreError) -> None:
        """Cancel the request, and send `error` as the last of its responses."""


@dataclass(slots=True, eq=False, repr=False)
class HttpRequest:
    """One HTTP request, complete.

    A service takes the memory that it keeps for the request, beyond the body, from `share`. All of it is
    released when the response has been sent.
    """

    method: str  # in capitals
    path: str  # as received, without the query; not percent-decoded
    captures: Mapping[str, Any]  # the named parts of the path; None for an absent part
    headers: Mapping[str, str]  # ignores the case of its keys; `items()` keeps repeated headers
    body: Buffer = b""  # contiguous bytes; still compressed
    received: tuple[int, int] | None = None  # monotonic_ns() around reading the body, for traces
    came_ns: int = field(default_factory=time.monotonic_ns)  # when its head was complete
    share: RequestShare = field(default_factory=boundless)  # of its connection's memory
    query: str = ""  # of the path, as received; only of GET
    asked: InferenceRequest | None = None  # that a service has read from it
    reply: EndsEarly | None = None  # its responses, if they can be ended early
    meter: UsageMeter | None = None  # of the tokens of its requests; None if nothing needs them
    observation: CallObservation | None = None  # gets its response; None if no observer wants it
    caller: Caller | None = None  # that has sent it; None if the server has no access policy
    active: ActiveCall | None = (
        None  # counts it in limits; None if no call is checked, logged or named
    )

    @property
    def model(self) -> str:
        """Return the model's name in the path, which the route must capture."""
        name: str = self.captures["model"]
        return name

    @property
    def version(self) -> int:
        """Return the model's version in the path, -1 for none. Raises CoreError(INVALID) for other text."""
        return parse_version(self.captures["version"] or "")

    @property
    def deadline_ns(self) -> int:
        """Return time.monotonic_ns() at the client's timeout, 0 for no timeout. Raises CoreError(INVALID)
        if the header is malformed."""
        found = timeout_ns(self.headers)
        return 0 if found is None else self.came_ns + found


class Parts(Protocol):
    """The pieces of a body, as they are produced.

    The consumer calls `aclose` when it needs no more: after the last piece, or when the client disconnects.
    """

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    async def aclose(self) -> None: ...


class PushedParts(Parts, Protocol):
    """Parts that are written as they arrive, while the client keeps up; the iterator has the others."""

    def attach(self, writer: PartWriter) -> None:
        """Use `writer` for parts from now on. The head and the parts before have been sent."""


@dataclass(slots=True, eq=False, repr=False)
class HttpResponse:
    """Status, headers and body of an HTTP response. A streamed body continues in `more`."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: TEXT_HEADERS)
    body: bytes = b""  # the whole body, or its beginning if `more` follows
    more: Parts | None = None  # the rest, each piece sent at once
    trace: Trace | None = None  # of the request, held until the response is sent

    def __repr__(self) -> str:
        return f"HttpResponse({self.status}, {dict(self.headers)}, {self.body[:200]!r})"
