"""Connections: the server of one HTTP port, on aiohttp's low-level server without applications and routes.

With a fast path each connection is a FastConnection (native/fast_connection.pyx), which passes other
requests to aiohttp. Without one, aiohttp handles the whole connection.

The metrics port uses it too, without a fast path, and so has the same limits.

Only this file, listener.py and their helpers in this package import aiohttp.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from http import HTTPStatus
from typing import Any

from core.account import Share
from core.errors import CoreError
from core.server import InferenceServer
from frontends.http.access_log import client_of, write_malformed
from frontends.http.aiohttp_web import HttpVersion11, web
from frontends.http.errors import refusal
from frontends.http.interceptors import HttpInterceptors
from frontends.http.message import HttpRequest
from frontends.http.native.fast_connection import FastConnection
from frontends.http.native.framing import Framing
from frontends.http.native.listener_context import ListenerContext
from frontends.http.options import HttpOptions
from frontends.http.request_timeouts import (
    TOO_MANY,
    TOO_SLOW,
    RequestTimeouts,
    TimedConnection,
    UnfinishedRequest,
)
from frontends.http.sending import response_of
from frontends.http.websocket import WebSocketSession
from frontends.shared.access import ActiveCall
from frontends.shared.access_log import AccessLog, AccessLogEntry
from frontends.shared.connection_limit import most_connections
from frontends.shared.shutdown import GOODBYE_S, not_done

logger = logging.getLogger("core")

# Longer than the keep-alive of proxies in front of a server, so that the proxy closes the connection first.
KEEP_ALIVE_S = 3630.0
_NEVER_S = 1e9

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Connections(web.Server):
    """All connections of one port. Cancels a handler when its client has disconnected.

    server      whose options set the limits of connections
    has_fast_path    whether connections have a fast path for requests to it
    interceptors  the fast path asks them before it takes a request; None where it may take any
    patience    closes connections whose request does not arrive in time
    access_log  for malformed HTTP; None for none
    """

    def __init__(
        self,
        handler: Handler,
        server: InferenceServer,
        has_fast_path: bool,
        interceptors: HttpInterceptors | None = None,
        access_log: AccessLog | None = None,
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
        self._open: set[_Connection | FastConnection] = (
            set()
        )  # no guests: their connections are there
        self._all_closed = asyncio.Event()
        self._conversations: set[WebSocketSession] = set()
        self._most = most_connections(options.http_max_connections)
        self.finishing = False
        self._refusing = False  # whether there are too many connections: the log reports it once
        self.access_log = access_log
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
            )

    def __call__(self) -> asyncio.Protocol:  # type: ignore[override]
        if self._context is not None:
            return FastConnection(self._context)
        return self._fallback(self._account.share())

    def _fallback(self, share: Share) -> _Connection:
        is_fallback = self._context is not None
        return _Connection(self, share, is_fallback=is_fallback, loop=self._loop, **self._kwargs)

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        if self._context is None:
            assert isinstance(handler, _Connection)
            self._opened(handler, transport)

    def connection_lost(
        self, handler: web.RequestHandler, exc: BaseException | None = None
    ) -> None:
        super().connection_lost(handler, exc)
        if self._context is None:
            assert isinstance(handler, _Connection)
            self._lost(handler)

    def _opened(
        self, connection: _Connection | FastConnection, transport: asyncio.Transport
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
            assert isinstance(connection, _Connection | FastConnection)
            client = client_of(connection.transport)
            self.access_log.write(AccessLogEntry("http", client, ""), HTTPStatus.REQUEST_TIMEOUT, 0)

    def _lost(self, connection: _Connection | FastConnection) -> None:
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
        """Run a conversation until it ends or the server stops."""
        self._conversations.add(conversation)
        try:
            return await conversation.run(call)
        finally:
            self._conversations.discard(conversation)

    async def shutdown(self, timeout: float | None = None) -> None:
        """Stop without `drain`, for aiohttp's own callers."""
        self.patience.end()
        await super().shutdown(timeout)

    async def drain(self, timeout_s: float) -> None:
        """Close idle connections at once, the others after their response or after `timeout_s`."""
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
        """End streams of responses with an error, as far as their clients read."""
        replies = [
            call.reply
            for connection in self.connections
            if isinstance(connection, _Connection)
            and (call := connection.call) is not None
            and call.reply is not None
        ]
        replies += [reply for each in self._conversations for reply in each.replies()]
        for reply in replies:
            reply.end(error)
        if replies:
            with suppress(asyncio.TimeoutError):  # a client that does not read
                await asyncio.wait_for(self._all_closed.wait(), GOODBYE_S)


class _Connection(web.RequestHandler):
    """One connection. Malformed HTTP is refused in the form of the protocol's errors.

    busy   whether it has a request without a response
    used   time.monotonic() when its last request ended; 0.0 before
    call   the request that is being answered; None for none
    active  call that is being answered; None for none, and without an access policy
    came   bytes received
    heard  of these, the bytes received when its last request ended
    share  its part of the memory that all connections may hold
    drops_followers  whether it had a request with a body after which the engine drops all further data
    """

    __slots__ = (
        "_framing",
        "_unread",
        "active",
        "busy",
        "call",
        "came",
        "drops_followers",
        "heard",
        "is_fallback",
        "share",
        "used",
    )

    def __init__(self, manager: Connections, share: Share, *, is_fallback: bool, **options: Any):
        super().__init__(manager, **options)
        self.share = share
        self.is_fallback = is_fallback
        self.drops_followers = False
        self._framing = Framing()  # the fast path does the same for a fallback connection
        self._unread = 0  # bytes counted for the write buffer of the transport
        self.busy = False
        self.used = 0.0
        self.call: HttpRequest | None = None
        self.active: ActiveCall | None = None
        self.came = self.heard = 0

    def data_received(self, data: bytes) -> None:
        self.came += len(data)
        if self.is_fallback or not data:
            self._feed(data)
            return
        at = 0
        while at < len(data) and self.transport is not None:
            end = self._framing.next_part(data, at, self.idle)
            self.drops_followers = self.drops_followers or self._framing.drops_followers()
            self._feed(data[at:end])
            at = end

    def _feed(self, data: bytes) -> None:
        """Pass a part to the engine. If it is malformed, the reader of an open body gets the error too."""
        before = len(self._messages)
        super().data_received(data)
        messages: Any = self._messages
        if len(messages) <= before or not hasattr(messages[-1][0], "exc"):
            return
        request: Any = self._current_request
        body: Any = messages[-2][1] if len(messages) > 1 else request and request.content
        if body is not None and not body.is_eof() and body.exception() is None:
            body.set_exception(web.RequestPayloadError(messages[-1][0].message))

    @property
    def finishing(self) -> bool:
        """Return whether the server is stopping, so that the next response is the last."""
        manager = self._manager
        return isinstance(manager, Connections) and manager.finishing

    def pause_writing(self) -> None:
        super().pause_writing()
        if self.is_fallback or self.transport is None:
            return  # the fast path counts these bytes
        size = self.transport.get_write_buffer_size()
        if self.share.try_take(size):
            self._unread = size
        else:
            self._loop.call_soon(self.abort)  # not within the transport's own call

    def resume_writing(self) -> None:
        super().resume_writing()
        self._forget_unread()

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        self._forget_unread()

    def _forget_unread(self) -> None:
        self.share.give(self._unread)
        self._unread = 0

    def abort(self) -> None:
        """Close now, and drop data that the client has not read."""
        if self.transport is not None:
            self.transport.abort()

    def unfinished(self) -> UnfinishedRequest | None:
        """Return the request of which a part is missing through the client's fault alone; None for none."""
        request = self._current_request
        if request is not None and not request.content.is_eof() and not self._reading_paused:
            return UnfinishedRequest(True, self.used, self.came - self.heard)
        if self.idle and self.came > self.heard:
            return UnfinishedRequest(False, self.used, self.came - self.heard)
        return None

    def give_up(self) -> None:
        """Close; send a response first if no request has begun."""
        if self.transport is not None:
            if not self.busy:
                self.transport.write(TOO_SLOW)
            self.force_close()

    @property
    def idle(self) -> bool:
        """Return whether it has answered every request whose head it has seen, and waits for the next."""
        waiter = self._waiter
        return waiter is not None and not waiter.done() and not self._messages

    def finish(self) -> None:
        """Close if there is no request. If there is one, pre_shutdown makes it close after the response."""
        # Bytes already written are still sent.
        if not self.busy and self.transport is not None:
            self.transport.close()

    def cut(self) -> None:
        """Close now, with or without a response."""
        self.force_close()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if isinstance(exc, ConnectionError):
            raise exc  # the client has disconnected: a response would not be read
        if request.writer.output_size > 0:
            if exc is not None:
                logger.error("HTTP: an answer is cut", exc_info=exc)
            raise ConnectionError("the answer has begun: no error can be told")
        if status >= 500:
            logger.error("HTTP: a request failed", exc_info=exc)
        text = (message or "Bad Request").strip().splitlines()[0].rstrip(":")
        # The engine treats a request that it could not read as HTTP/1.0.
        request._version = HttpVersion11
        response = response_of(refusal(status, text), request)
        response.force_close()
        manager = self._manager
        if isinstance(manager, Connections) and manager.access_log is not None:
            write_malformed(manager.access_log, request, status, response)
        return response


def connection_of(request: web.BaseRequest) -> _Connection:
    """Return the connection of a request."""
    connection = request.protocol
    assert isinstance(connection, _Connection)
    return connection
