"""HttpListener: one port of HTTP. It listens, and passes each request through router, service and response.

aiohttp ─► [listener] ─► router ─► service ─► parse ─► InferenceServer.infer ─► render ─► aiohttp

Common inference requests do not come here: native/fast_connection.pyx takes them before.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from core.control import called_by
from core.errors import CoreError, invalid, unavailable
from core.server import InferenceServer
from core.telemetry import log
from core.tensor import Buffer
from frontends.http.access_log import complete, entry_of, size_of
from frontends.http.aiohttp_connection import connection_of
from frontends.http.aiohttp_web import HttpVersion10, web
from frontends.http.bodies import read_body
from frontends.http.codec.limits import (
    MOST_CONTROL_BYTES,
    body_too_large,
    control_too_large,
    largest_body,
    too_large,
)
from frontends.http.connections import Connections
from frontends.http.cors import Cors, is_preflight
from frontends.http.errors import error_answer, refusal, unexpected
from frontends.http.interceptors import HttpCallDescription, HttpInterceptors
from frontends.http.message import HttpRequest, HttpResponse
from frontends.http.observing import end, observe, watched
from frontends.http.options import HttpOptions
from frontends.http.request_share import RequestShare
from frontends.http.route import Route
from frontends.http.router import Router
from frontends.http.sending import response_of, send, without_version
from frontends.http.services.generate import generate_stream
from frontends.http.websocket import WebSocketSession, asked_for, refused
from frontends.shared import unix_sockets
from frontends.shared.access_log import GONE
from frontends.shared.connection_limit import BACKLOG, end_unread
from frontends.shared.context import context_of
from frontends.shared.inherited_sockets import address_of, listeners_at
from frontends.shared.interceptors import caller_of
from frontends.shared.ports import in_use
from frontends.shared.tls import Certificates, listening

logger = logging.getLogger("core")


class HttpListener:
    """An HTTP/1.1 port. Not thread-safe: call from the event loop only.

    name          prefix of its flags
    router        maps each path to its service
    title         name in the log
    reuse_port    whether other processes may listen on the same port
    lane          whether common inference requests may bypass aiohttp
    certificates  the TLS certificates, None for a server without TLS
    logged        whether requests get lines in the access log
    cors          pages of other origins that may use the port; None for no fields of CORS
    Raises what `context_of` raises.
    """

    name: str
    _binary_bound = staticmethod(largest_body)  # of an inference request

    def __init__(
        self,
        server: InferenceServer,
        router: Router,
        title: str,
        address: str,
        port: int,
        *,
        reuse_port: bool,
        lane: bool = False,
        certificates: Certificates | None = None,
        logged: bool = True,
        cors: Cors | None = None,
    ):
        options = HttpOptions.of(server.options)
        self._server = server
        self._router = router
        self._title = title
        self._address = address
        self._port = port
        self._reuse_port = reuse_port
        self._lane = lane
        self._certificates = certificates
        self._cors = cors
        self._most_bytes = options.http_max_input_size
        self._most_body = options.http_max_body_size
        self._answer_timeout_secs = options.http_answer_timeout_secs
        self._context = context_of(server)
        self._interceptors = HttpInterceptors(
            self._context, router, logged=logged, preflights=cors is not None
        )
        self._listeners: list[asyncio.Server] = []
        self._unix: unix_sockets.UnixListener | None = None  # while it listens at one
        self._connections: Connections | None = None

    @property
    def port(self) -> int:
        """Return the open port, also one that the system chose; without one, the port that was given."""
        if not self._listeners or self._unix is not None:
            return self._port
        port: int = self._listeners[0].sockets[0].getsockname()[1]
        return port

    async def start(self) -> None:
        """Listen on the port.

        Raises CoreError(UNAVAILABLE) if the port cannot be bound, CoreError(INVALID) for bad certificates.
        """
        interceptors = self._interceptors
        connections = Connections(
            self._handle_intercepted if interceptors.needed else self._handle,
            self._server,
            self._lane,
            interceptors if interceptors.concern_inference else None,
            interceptors.access_log,
            self._cors,
            self._context.observers,
        )
        secure = listening(self._certificates, "http/1.1", self._context.files)
        if unix_sockets.is_unix(self._address):
            self._unix = unix_sockets.listen(self._address, self._context.options.unix_socket_mode)
            self._listeners = [await unix_sockets.serve(connections, self._unix, **secure)]
            self._connections = connections
            logger.info("Started %s at %s", self._title, self._address)
            return
        try:
            self._listeners = await self._listen(connections, secure)
        except OSError as error:
            where = f"{self._address}:{self._port}"
            if error.errno == errno.EADDRINUSE:
                raise in_use(where, self.name) from None
            raise unavailable(f"cannot listen at '{where}': {error.strerror or error}") from None
        for each in self._listeners:
            end_unread(each, self._answer_timeout_secs)
        self._connections = connections
        logger.info("Started %s at %s:%d", self._title, self._address, self.port)

    async def _listen(
        self, connections: Connections, secure: dict[str, Any]
    ) -> list[asyncio.Server]:
        """Listen on the port, or on the sockets that this process has inherited for it. Raises OSError."""
        create = asyncio.get_running_loop().create_server
        if inherited := listeners_at(address_of(self._address, self._port)):
            return [
                await create(connections, sock=each, backlog=BACKLOG, **secure)
                for each in inherited
            ]
        host, port, reuse = self._address, self._port, self._reuse_port or None
        return [await create(connections, host, port, backlog=BACKLOG, reuse_port=reuse, **secure)]

    async def stop(self, timeout_s: float) -> None:
        """Refuse new connections, finish running requests for at most `timeout_s`, close everything."""
        listeners, self._listeners = self._listeners, []
        connections, self._connections = self._connections, None
        if connections is None:
            return
        for each in listeners:
            each.close()
        if self._unix is not None:
            self._unix.remove()
        await connections.drain(timeout_s)

    async def _handle_intercepted(self, request: web.BaseRequest) -> web.StreamResponse:
        """Handle a request with interceptors: check it first, and log it once it is answered."""
        connection, path = connection_of(request), _path(request.raw_path)
        active = connection.active = self._interceptors.enter_request(
            request.method, path, request.headers, request.transport
        )
        if (log := self._interceptors.access_log) is not None:
            active.record(log, entry_of(request))
        status, size = GONE, 0
        try:
            if active.error is None:
                response = await self._handle(request)
            else:
                refused_now = self._router.refused(path, error_answer(active.error))
                response = response_of(refused_now, request)
            status, size = response.status, size_of(response)
            return response
        except web.HTTPException as error:
            status = error.status
            raise
        except ConnectionError:
            raise
        except Exception:
            active.entry = None  # the connection answers, and writes the line
            raise
        finally:
            connection.active = None
            if active.entry is not None:
                call, captures = connection.call, self._router.captures
                logged = active.entry.path
                named = captures(request.method, logged) if call is None else call.captures
                complete(active.entry, named, call)
            active.end(status, size)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request._message.version < HttpVersion10:
            return without_version(request)
        if asked_for(request):
            found = self._conversation(request)
            if isinstance(found, HttpResponse):
                return response_of(found, request)
            if found is not None:
                try:
                    return await found
                except web.HTTPException as error:
                    refused_now = refusal(error.status, error.text or error.reason)
                    return response_of(refused_now, request)
        connection, response = connection_of(request), None
        share = RequestShare(connection.share)
        try:
            answer = await self._answer(request, share)
            if answer.status >= 400:
                answer = self._router.refused(_path(request.raw_path), answer)
            response = await send(watched(connection.call, answer), request, share)
            return response
        finally:
            share.close()
            end(connection.call, response)

    def _conversation(
        self, request: web.BaseRequest
    ) -> HttpResponse | Awaitable[web.StreamResponse] | None:
        """Return an awaitable that serves the WebSocket of a client, or the response that refuses it.

        Return None if the path has no WebSocket: the upgrade is then ignored (RFC 9110, 7.8).
        """
        path = _path(request.raw_path)
        match = self._router.match("POST", path, request.headers)
        if isinstance(match, HttpResponse):
            return match if path.endswith("/generate_stream") else None
        if match.route.service is not generate_stream:
            return None
        if (answer := refused(request.headers, self._cors)) is not None:
            return answer
        headers = request.headers
        active = connection_of(request).active

        def call(body: bytes) -> HttpRequest:
            share = RequestShare(connection_of(request).share)
            captures = self._router.named(self._server, match)
            meter = None if active is None else active.meter()
            share.take_large(len(body), "a message of the WebSocket")
            return HttpRequest("POST", path, captures, headers, body, share=share, meter=meter)

        try:
            first = call(b"")
            self._server.models.signature(first.model, first.version)
            _ = first.deadline_ns  # an invalid timeout is refused now
        except CoreError as error:
            return error_answer(error)
        assert self._connections is not None
        conversation = WebSocketSession(self._server, request, self._most_bytes, active)
        return self._connections.converse(conversation, call)

    def _bound(
        self, route: Route, headers: Mapping[str, str]
    ) -> tuple[int, Callable[[int, int], CoreError]]:
        """Return the limit of a body in bytes, and the function that makes the error above it.

        Binary tensors have the highest limit, decoded bodies a lower one, control requests the lowest.
        """
        if route.category != "inference" and not route.brings_files:
            return min(MOST_CONTROL_BYTES, self._most_bytes), control_too_large
        most = self._most_bytes
        if route.category == "inference":
            most = self._binary_bound(headers, most, self._most_body)
        if most < self._most_body:
            return most, too_large
        return self._most_body, body_too_large

    def _caller(self, request: web.BaseRequest) -> str:
        description = HttpCallDescription(request.headers, request.transport)
        return caller_of(connection_of(request).active, description)

    async def _answer(self, request: web.BaseRequest, share: RequestShare) -> HttpResponse:
        """Return the response; an error is a response, too. Raises only when the client has disconnected."""
        call: HttpRequest | None = None
        connection = connection_of(request)
        try:
            path = _path(request.raw_path)
            if self._cors is not None and is_preflight(request.method, request.headers):
                return self._cors.preflight(request.headers, self._router.methods(path))
            match = self._router.match(request.method, path, request.headers)
            if isinstance(match, HttpResponse):
                return match
            body: Buffer = b""
            received = None
            start_ns = time.monotonic_ns()
            if match.route.takes_body:
                body = await read_body(request, *self._bound(match.route, request.headers), share)
            if self._server.tracing.on:
                received = (start_ns, time.monotonic_ns())
            call = HttpRequest(
                request.method,
                path,
                self._router.named(self._server, match),
                request.headers,
                body,
                received,
                start_ns,
                share,
            )
            connection.call = call
            if (begin := self._context.observers.begin) is not None:
                observe(begin, self.name, match.route.category, request, call)
            if (active := connection.active) is not None:
                call.active, call.meter, call.caller = active, active.meter(), active.caller
            if request.method == "GET":
                call.query = request.raw_path.partition("?")[2]
            elif match.route.category != "inference":
                with called_by(self._caller(request)):
                    return await match.route.service(self._server, call)
            return await match.route.service(self._server, call)
        except CoreError as error:
            if call is not None and call.asked is not None:
                log.failed(call.asked.id, error)
            return error_answer(error)
        except web.RequestPayloadError as error:
            return error_answer(invalid(f"the body of the request is malformed: {error}"))
        except Exception as error:
            if isinstance(error, ConnectionError) and request.transport is None:
                raise  # the client has disconnected: a response would not be read
            asked = None if call is None else call.asked
            return unexpected(
                f"{request.method} {request.raw_path}", "" if asked is None else asked.id
            )


def _path(target: str) -> str:
    """Return the path in a request line's target, a path or a whole URL, without query and fragment."""
    if not target.startswith("/"):
        target = urlsplit(target).path
    return target.partition("?")[0].partition("#")[0]
