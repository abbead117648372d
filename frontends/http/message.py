"""HttpRequest and HttpResponse: the input and output of a service, without types of any engine."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from core.config.model_version import parse_version
from core.request import InferenceRequest
from core.response import Reply
from core.telemetry.tracing import Trace
from core.tensor import Buffer
from frontends.http.codec.timeout import timeout_ns
from frontends.http.request_share import RequestShare, boundless

JSON_HEADERS = {"Content-Type": "application/json"}
TEXT_HEADERS = {"Content-Type": "text/plain"}


@dataclass(slots=True, eq=False, repr=False)
class HttpRequest:
    """One HTTP request, complete.

    method      in capitals
    path        as received, without the query; not percent-decoded
    captures    the named parts of the path, by the route's pattern; None for an absent part
    headers     a mapping that ignores the case of its keys; `items()` keeps repeated headers
    body        contiguous bytes, b"" for none; still compressed
    received    time.monotonic_ns() before and after the body was read, for a server that traces
    came_ns     time.monotonic_ns() when its head was complete
    share       the request's part of its connection's memory. A service takes the memory that it keeps for
                the request, beyond the body; all of it is released when the response has been sent
    asked       the inference request that a service has read from it; None for none
    query       of the path, as received; only of GET
    reply       its responses, if they can be ended before the last one (Reply.end); None if not
    """

    method: str
    path: str
    captures: Mapping[str, Any]
    headers: Mapping[str, str]
    body: Buffer = b""
    received: tuple[int, int] | None = None
    came_ns: int = field(default_factory=time.monotonic_ns)
    share: RequestShare = field(default_factory=boundless)
    query: str = ""
    asked: InferenceRequest | None = None
    reply: Reply | None = None

    @property
    def model(self) -> str:
        """Return the model's name in the path, which the route must capture."""
        name: str = self.captures["model"]
        return name

    @property
    def version(self) -> int:
        """Return the model's version in the path, -1 for the newest. Raises CoreError(INVALID) for others."""
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


class HttpResponse:
    """Status, headers and body of an HTTP response.

    body   the whole body, or its beginning if `more` follows
    more   the rest, each piece sent at once; None for none
    trace  of the request, held until the response is sent; None for no trace
    """

    __slots__ = ("body", "headers", "more", "status", "trace")

    def __init__(
        self,
        status: int = 200,
        headers: Mapping[str, str] = TEXT_HEADERS,
        body: bytes = b"",
        more: Parts | None = None,
    ):
        self.status = status
        self.headers = headers
        self.body = body
        self.more = more
        self.trace: Trace | None = None

    def __repr__(self) -> str:
        return f"HttpResponse({self.status}, {dict(self.headers)}, {self.body[:200]!r})"
