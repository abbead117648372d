"""Connections: the server of one HTTP port, on aiohttp's low-level server without applications and routes.

With a fast path each connection is a FastConnection (native/fast_connection.pyx), which passes other
requests to aiohttp. Without one, aiohttp handles the whole connection.

The metrics port uses it too, without a fast path, and so has the same limits.

Only this file, listener.py, aiohttp_connection.py and their helpers in this package import aiohttp.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from http import HTTPStatus

from core.errors import CoreError
from core.server import InferenceServer
from core.system.account import Share
from frontends.http.access_log import client_of
from frontends.http.aiohttp_connection import AiohttpConnection, connection_of
from frontends.http.aiohttp_web import web
from frontends.http.cors import Cors
from frontends.http.interceptors import HttpInterceptors
from frontends.http.message import HttpRequest
from frontends.http.native.fast_connection import FastConnection
from frontends.http.native.listener_context import ListenerContext
from frontends.http.options import HttpOptions
from frontends.http.request_timeouts import TOO_MANY, RequestTimeouts, TimedConnection
from frontends.http.websocket import WebSocketSession
from frontends.shared.access_log import AccessLog, AccessLogEntry
from frontends.shared.call_observers import CallObservers
from frontends.shared.connection_limit import most_connections
from frontends.shared.load_reports import LoadReports
from frontends.shared.shutdown import GOODBYE_S, not_done

logger = logging.getLogger("core")

# Longer than the keep-alive of proxies in front of a server, so that the proxy closes the connection first.
KEEP_ALIVE_S = 3630.0
_NEVER_S = 1e9

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Connections(web.Server):
    """All connections of one port. Cancels a handler when its client has disconnected.

    handler         answers the requests that aiohttp reads
    server          takes the requests of the fast path; its options set the limits of connections
    has_fast_path   whether connections have a fast path for inference requests
    interceptors    the fast path asks them before it takes a request; None: it may take every request
    patience        closes connections whose request does not arrive in time
    access_log      gets an entry for each malformed or unfinished request; None: no log
    cors            returns header fields for responses; None: no fields
    observers       the fast path asks them for each request; None: it asks none
    """

    def __init__(
        self,
        handler: Handler,
        server: InferenceServer,
        has_fast_path: bool,
        interceptors: HttpInterceptors | None = None,
        access_log: AccessLog | None = None,
        cors: Cors | None = None,
        observers: CallObservers | None = None,
    ):
        options = HttpOptions.of(server.options)
        self._account = server.account
        super().__init__(
            self._handle,
            handler_cancellation=True,
            access_log=None,
            auto_decompress=False,
            # A connection sees the requests of both engines, so it alone knows when it is idle.
            keepalive_timeout=_NEVER_S if has_fast_path else KEEP_ALIVE_S,
        )
        self._handler = handler
        # A connection behind a FastConnection is not in it: the FastConnection is.
        self._open: set[AiohttpConnection | FastConnection] = set()
        self._all_closed = asyncio.Event()
        self._conversations: set[WebSocketSession] = set()
        self._most = most_connections(options.http_max_connections)
        self.finishing = False
        self._refusing = False  # whether there are too many connections: the log reports it once
        self.access_log = access_log
        self.cors = cors
        self.load_reports = LoadReports.of(server)
        self.patience = RequestTimeouts(
            self._open,
            options.http_header_timeout_secs,
            options.http_body_timeout_secs,
            options.http_body_byte_rate,
            given_up=self._too_slow,
        )
        self.patience.begin(self._loop)
        self._context: ListenerContext | None = None
        if has_fast_path:
            self._context = ListenerContext(
                server,
                self._loop,
                interceptors=interceptors,
                access_log=access_log,
                fallback=self._fallback,
                opened=self._opened,
                lost=self._lost,
                keep_alive_s=KEEP_ALIVE_S,
                leaves_origins=cors is not None,
                observers=observers,
            )

    def __call__(self) -> asyncio.Protocol:  # type: ignore[override]
        if self._context is not None:
            return FastConnection(self._context)
        return self._fallback(self._account.share())

    def _fallback(self, share: Share) -> AiohttpConnection:
        is_fallback = self._context is not None
        return AiohttpConnection(
            self, share, is_fallback=is_fallback, loop=self._loop, **self._kwargs
        )

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        if self._context is None:
            assert isinstance(handler, AiohttpConnection)
            self._opened(handler, transport)

    def connection_lost(
        self, handler: web.RequestHandler, exc: BaseException | None = None
    ) -> None:
        super().connection_lost(handler, exc)
        if self._context is None:
            assert isinstance(handler, AiohttpConnection)
            self._lost(handler)

    def _opened(
        self, connection: AiohttpConnection | FastConnection, transport: asyncio.Transport
    ) -> None:
        # The system then notices a client that vanished without closing its connection.
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if len(self._open) >= self._most:
            self._refuse(transport)
        self._open.add(connection)
        self._all_closed.clear()

    def _refuse(self, transport: asyncio.Transport) -> None:
        if not self._refusing:
            self._refusing = True
            logger.warning("HTTP: more than %d connections; others are refused", self._most)
        transport.write(TOO_MANY)
        transport.close()

    def _too_slow(self, connection: TimedConnection) -> None:
        if self.access_log is not None:
            assert isinstance(connection, AiohttpConnection | FastConnection)
            client = client_of(connection.transport)
            self.access_log.write(AccessLogEntry("http", client, ""), HTTPStatus.REQUEST_TIMEOUT, 0)

    def _lost(self, connection: AiohttpConnection | FastConnection) -> None:
        self._open.discard(connection)
        self._refusing = self._refusing and len(self._open) >= self._most
        if not self._open:
            self._all_closed.set()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = connection_of(request)
        connection.busy = True
        try:
            return await self._handler(request)
        finally:
            connection.busy = False
            connection.call = None
            connection.used = time.monotonic()
            connection.heard = connection.came

    async def converse(
        self, conversation: WebSocketSession, call: Callable[[bytes], HttpRequest]
    ) -> web.StreamResponse:
        """Run a WebSocket session until it ends. `drain` of a server that stops ends it, too."""
        self._conversations.add(conversation)
        try:
            return await conversation.run(call)
        finally:
            self._conversations.discard(conversation)

    async def shutdown(self, timeout: float | None = None) -> None:
        """Stop the checks of timeouts, and close all connections of aiohttp.

        timeout   seconds in which running handlers may end. Unlike `drain`, it waits for nothing else
        """
        self.patience.end()
        await super().shutdown(timeout)

    async def drain(self, timeout_s: float) -> None:
        """Close idle connections at once, and each other one after its response.

        After `timeout_s` open streams of responses get an error, and all connections are closed.
        """
        self.finishing = True
        self.pre_shutdown()
        self.patience.end()
        for conversation in tuple(self._conversations):
            conversation.finish()
        for connection in tuple(self._open):
            connection.finish()
        if self._open:
            try:
                await asyncio.wait_for(self._all_closed.wait(), timeout_s)
            except asyncio.TimeoutError:
                logger.warning("HTTP: %d connections are cut", len(self._open))
                await self._end_streams(not_done(timeout_s))
        await self.shutdown(0.1)
        for connection in tuple(self._open):
            connection.cut()

    async def _end_streams(self, error: CoreError) -> None:
        """End all streams of responses with an error.

        If there were any, wait at most GOODBYE_S until all connections are closed.
        """
        replies = [
            call.reply
            for connection in self.connections
            if isinstance(connection, AiohttpConnection)
            and (call := connection.call) is not None
            and call.reply is not None
        ]
        replies += [reply for each in self._conversations for reply in each.replies()]
        for reply in replies:
            reply.end(error)
        if replies:
            with suppress(asyncio.TimeoutError):  # a client that does not read
                await asyncio.wait_for(self._all_closed.wait(), GOODBYE_S)
