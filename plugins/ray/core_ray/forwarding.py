"""HttpForwarder: an ASGI application that passes requests to an HTTP server of the same process.

Serve's proxy ─► replica ─► [HttpForwarder] ─► HTTP port of the replica's core.Server

So a request through Ray meets the same routes, limits, tokens and streams as one at the server's own port.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, MutableMapping
from typing import Any
from urllib.parse import quote

import aiohttp
from yarl import URL

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Fields = list[tuple[bytes, bytes]]

_NO_DEFAULTS = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")  # what aiohttp would add
_REQUEST_ID = b"x-request-id"
_SAFE = "/!$&'()*+,;=:@%~"  # unescaped in a path
# Fields about one connection (RFC 9110, 7.6.1), and what the next connection says itself.
_OF_CONNECTION = {
    b"connection",
    b"expect",
    b"keep-alive",
    b"proxy-authenticate",
    b"proxy-authorization",
    b"proxy-connection",
    b"te",
    b"trailer",
    b"transfer-encoding",
    b"upgrade",
}


class HttpForwarder:
    """Passes requests on, and their responses back, piece by piece. Use it on one event loop only.

    url          of the server, such as http://127.0.0.1:8000
    request_id   returns the id of the current request, which a request without X-Request-Id gets; "" for none
    The end of the task that sends a request closes its connection, so the server cancels the request.
    """

    def __init__(self, url: str, request_id: Callable[[], str] = str):
        self._url = url
        self._request_id = request_id
        self._session: aiohttp.ClientSession | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request. Raises aiohttp.ClientError if the server does not answer."""
        fields = _passed(scope["headers"])
        if (id := self._request_id()) and not any(name == _REQUEST_ID for name, _ in fields):
            fields.append((_REQUEST_ID, id.encode()))
        async with self._client().request(
            scope["method"],
            URL(f"{self._url}{_target(scope)}", encoded=True),
            headers=[(name.decode("latin-1"), value.decode("latin-1")) for name, value in fields],
            data=await _body(fields, receive),
            skip_auto_headers=_NO_DEFAULTS,
            allow_redirects=False,
            ssl=False,  # the certificate of this very process names its public address
        ) as response:
            await send(
                {
                    "type": "http.response.start",
                    "status": response.status,
                    "headers": _passed((n.lower(), v) for n, v in response.raw_headers),
                }
            )
            async for piece in response.content.iter_any():
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _client(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
            )
        return self._session


def _target(scope: Scope) -> str:
    """Return path and query as the client sent them, without the route prefix of the application."""
    path = scope.get("raw_path") or quote(scope["path"], safe=_SAFE).encode()
    root = quote(scope.get("root_path", ""), safe=_SAFE).encode()
    if root and path.startswith(root):
        path = path[len(root) :]
    query: bytes = scope.get("query_string", b"")
    target = path.partition(b"?")[0] or b"/"
    return (target + (b"?" + query if query else b"")).decode("latin-1")


def _passed(fields: Iterable[tuple[bytes, bytes]]) -> Fields:
    """Return the header fields that concern the message, without those of the connection."""
    return [(name, value) for name, value in fields if name not in _OF_CONNECTION]


async def _body(fields: Fields, receive: Receive) -> bytes | AsyncIterator[bytes] | None:
    """Return the body of a request: whole if its length is known, else in pieces; None if it has none."""
    length = next((int(value) for name, value in fields if name == b"content-length"), None)
    if length == 0:
        return None
    first = await receive()
    body: bytes = first.get("body", b"")
    if not first.get("more_body", False):
        return body or None
    if length is None:
        return _pieces(body, receive)
    return b"".join([body, *[piece async for piece in _pieces(b"", receive)]])


async def _pieces(first: bytes, receive: Receive) -> AsyncIterator[bytes]:
    if first:
        yield first
    more = True
    while more:
        message = await receive()
        more = message.get("more_body", False)
        if piece := message.get("body", b""):
            yield piece
