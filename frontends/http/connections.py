"""The listening engine: aiohttp's low-level server, without its applications and routes.

With a fast path each connection is a FastConnection (native/fast_connection.pyx), which leaves other requests
to aiohttp. Without one aiohttp has the connection for itself.

The port of metrics listens with it too, without a connection: it has the same bounds.

Here and in endpoint.py are the only imports of aiohttp.
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

# Longer than proxies in front of a server keep theirs, so that it is they who close a connection.
KEEP_ALIVE_S = 3630.0
_NEVER_S = 1e9

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Connections(web.Server):
    """Every connection of one port. A handler is cancelled when its client has gone.

    server      whose options bound connections
    has_fast_path    whether connections have a fast path for requests to it
    interceptors  asked by the fast path before it takes a request; None where it may take any
    patience    ends those whose request does not come
    access_log  for what is no HTTP; None for none
    """

    def __init__(
        self,
        handler: Handler,
        server: InferenceServer,
        has_fast_path: bool,
        interceptors: HttpInterceptors | None = None,
        access_log: AccessLog | None = None,
    ):
        options = server.options
        self._account = server.account
        super().__init__(
            self._handle,
            handler_cancellation=True,
            access_log=None,
            auto_decompress=False,
            # A connection sees both engines' requests, so it alone knows when a connection is idle.
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
        self._refusing = False  # since when there are too many, which the log says once
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
        # So that the system notices a client that vanished without a word.
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
        """Run a conversation, to its end or to that of the server."""
        self._conversations.add(conversation)
        try:
            return await conversation.run(call)
        finally:
            self._conversations.discard(conversation)

    async def shutdown(self, timeout: float | None = None) -> None:
        """For who ends it without `drain`."""
        self.patience.end()
        await super().shutdown(timeout)

    async def drain(self, timeout_s: float) -> None:
        """Close idle connections at once, the others after their answer, or when the time is over."""
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
        """Let streams of answers end with an error, as far as their clients read."""
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
    """One connection. What is no HTTP is refused in the form of the protocol's errors.

    busy   it has a request without an answer
    used   time.monotonic() when its last request was over; 0.0 before
    call   the request that is being answered; None for none
    active  call that is being answered; None for none, and without an access policy
    came   bytes that have come
    heard  of these, those that had come when its last request was over
    share  of the memory that all connections may hold
    drops_followers  whether it had a request behind whose body the engine drops what follows
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
        self._framing = Framing()  # its fast path does the same for a fallback
        self._unread = 0  # bytes that are counted for what the transport keeps
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
        """Give the engine a part; who reads a body in which there is an error is request_head."""
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
        """Whether the server ends: the next answer is the last."""
        manager = self._manager
        return isinstance(manager, Connections) and manager.finishing

    def pause_writing(self) -> None:
        super().pause_writing()
        if self.is_fallback or self.transport is None:
            return  # its fast path counts
        size = self.transport.get_write_buffer_size()
        if self.share.try_take(size):
            self._unread = size
        else:
            self._loop.call_soon(self.abort)  # not within what the transport does now

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
        """Close now, and drop what the client has not read."""
        if self.transport is not None:
            self.transport.abort()

    def unfinished(self) -> UnfinishedRequest | None:
        """The request of which a part is missing, for which nothing but the client is to blame."""
        request = self._current_request
        if request is not None and not request.content.is_eof() and not self._reading_paused:
            return UnfinishedRequest(True, self.used, self.came - self.heard)
        if self.idle and self.came > self.heard:
            return UnfinishedRequest(False, self.used, self.came - self.heard)
        return None

    def give_up(self) -> None:
        """Close; with an answer if no request has begun."""
        if self.transport is not None:
            if not self.busy:
                self.transport.write(TOO_SLOW)
            self.force_close()

    @property
    def idle(self) -> bool:
        """Whether it has answered every request whose head it has seen and waits for the next."""
        waiter = self._waiter
        return waiter is not None and not waiter.done() and not self._messages

    def finish(self) -> None:
        """Close if there is no request; pre_shutdown has told it to close after its answer."""
        # What is written already still leaves.
        if not self.busy and self.transport is not None:
            self.transport.close()

    def cut(self) -> None:
        """Close now, answered or not."""
        self.force_close()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if isinstance(exc, ConnectionError):
            raise exc  # the client has gone: nobody reads an answer
        if request.writer.output_size > 0:
            if exc is not None:
                logger.error("HTTP: an answer is cut", exc_info=exc)
            raise ConnectionError("the answer has begun: no error can be told")
        if status >= 500:
            logger.error("HTTP: a request failed", exc_info=exc)
        text = (message or "Bad Request").strip().splitlines()[0].rstrip(":")
        # The engine takes what it could not read for HTTP/1.0.
        request._version = HttpVersion11
        response = response_of(refusal(status, text), request)
        response.force_close()
        manager = self._manager
        if isinstance(manager, Connections) and manager.access_log is not None:
            write_malformed(manager.access_log, request, status, response)
        return response


def connection_of(request: web.BaseRequest) -> _Connection:
    """The one that a request came on."""
    connection = request.protocol
    assert isinstance(connection, _Connection)
    return connection
