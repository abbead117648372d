"""HttpForwarder: an ASGI application that passes requests to an HTTP server of the same process.

Serve's proxy ─► replica ─► [HttpForwarder] ─► HTTP port of the replica's core.Server

So a request through Ray meets the same routes, limits, tokens and streams as one at the server's own port.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import quote

from core_ray.http_connection import Fields, HttpConnection
from core_ray.http_connections import HttpConnections

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_SAFE = "/!$&'()*+,;=:@%~"  # unescaped in a path
_WITH_BODY = ("PATCH", "POST", "PUT")  # methods whose requests have a length, also of an empty body
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
        self._request_id = request_id
        self._connections = HttpConnections(url)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request.

        Raises ValueError if its head has a length that is no number, or the end of a line within a field;
        ConnectionError if the client leaves before the end of the request, or the server before that of the
        response; another OSError if the port of the server cannot be reached.
        """
        body = RequestBody(dict(scope["headers"]), receive)
        first = await body.begin()
        head = self._head(scope, body)
        connection = await self._connections.take()
        connection.write(head, first)
        rest = asyncio.create_task(body.write_rest(connection)) if body.has_more else None
        try:
            await _answer(connection, scope["method"], send)
        except BaseException as error:
            connection.close()
            if body.error is not None and isinstance(error, OSError):
                raise body.error from error  # that closed the connection
            raise
        finally:
            if rest is not None:
                rest.cancel()
        if body.has_more:  # the server has answered before its end
            connection.close()
        self._connections.put_back(connection)

    def close(self) -> None:
        """Close the connections that have no request."""
        self._connections.close()

    def _head(self, scope: Scope, body: RequestBody) -> bytes:
        """Return the head of a request. Raises ValueError if a part of it holds the end of a line."""
        method, has_host, id = scope["method"], False, self._request_id()
        lines = [b"%b %b HTTP/1.1" % (method.encode(), _target(scope))]
        for name, value in scope["headers"]:
            if name in _OF_CONNECTION or name == b"content-length":
                continue
            has_host = has_host or name == b"host"
            if name == b"x-request-id":
                id = ""
            lines.append(b"%b: %b" % (name, value))
        if not has_host:
            lines.append(b"host: %b" % self._connections.authority)
        if id:
            lines.append(b"x-request-id: %b" % id.encode())
        if body.length is None:
            lines.append(b"transfer-encoding: chunked")
        elif body.length or body.is_declared or method in _WITH_BODY:
            lines.append(b"content-length: %d" % body.length)
        head = b"\r\n".join(lines)
        if head.count(b"\n") >= len(lines) or head.count(b"\r") >= len(lines):
            raise ValueError(
                f"{method} {scope['path']!r}: a header has the end of a line in its value"
            )
        return head + b"\r\n\r\n"


async def _answer(connection: HttpConnection, method: str, send: Send) -> None:
    """Send the response of the server as it arrives."""
    head = await connection.head(method)
    fields: Fields = [each for each in head.fields if each[0] not in _OF_CONNECTION]
    await send({"type": "http.response.start", "status": head.status, "headers": fields})
    is_last = False
    while not is_last:
        piece, is_last = await connection.piece()
        await send({"type": "http.response.body", "body": piece, "more_body": not is_last})


def _target(scope: Scope) -> bytes:
    """Return path and query as the client sent them, without the route prefix of the application."""
    path: bytes = scope.get("raw_path") or quote(scope["path"], safe=_SAFE).encode()
    root = quote(scope.get("root_path", ""), safe=_SAFE).encode()
    if root and path.startswith(root):
        path = path[len(root) :]
    query: bytes = scope.get("query_string", b"")
    target = path.partition(b"?")[0] or b"/"
    return target + b"?" + query if query else target


class RequestBody:
    """The body of a request of Serve.

    fields        of the request, by their names
    length        in bytes; None if only its end tells it
    is_declared   whether the client has sent a length
    has_more      whether a part of it is still to be written
    error         why `write_rest` has closed the connection
    """

    def __init__(self, fields: dict[bytes, bytes], receive: Receive):
        self._receive = receive
        self.is_declared = b"content-length" in fields
        self.has_more = False
        self.error: Exception | None = None
        self.length: int | None = None
        if b"transfer-encoding" not in fields:
            self.length = int(fields.get(b"content-length", b"0"))
        self._left = self.length or 0

    async def begin(self) -> bytes:
        """Return what is to be written behind the head. Raises ConnectionError if the client has left."""
        if self.length == 0:
            return b""
        message = await self._receive()
        if message["type"] != "http.request":
            raise ConnectionError("the client has left before the end of its request")
        part: bytes = message.get("body", b"")
        self.has_more = message.get("more_body", False)
        if not self.has_more:
            self.length = len(part)
            return part
        return self._framed(part)

    async def write_rest(self, connection: HttpConnection) -> None:
        """Write the other parts as they come. If that fails, set `error` and close: the reader raises."""
        try:
            while self.has_more:
                message = await self._receive()
                part = self._framed(message.get("body", b""))
                is_last = not message.get("more_body", False)
                if is_last and self.length is None:
                    part += b"0\r\n\r\n"
                if message["type"] != "http.request" or (is_last and self._left):
                    raise ConnectionError("the client has left before the end of its request")
                connection.write(part)
                self.has_more = not is_last
                await connection.written()
        except Exception as error:
            self.error = error
            connection.close()

    def _framed(self, part: bytes) -> bytes:
        """Return a part as it is written. Raises ConnectionError for more bytes than the length."""
        if self.length is None:
            return b"%x\r\n%b\r\n" % (len(part), part) if part else b""
        self._left -= len(part)
        if self._left < 0:
            raise ConnectionError("the client has sent more than the length of its request")
        return part
