"""AiohttpConnection: one connection that aiohttp reads, by itself or behind the fast path."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from core.system.account import Share
from frontends.http.access_log import write_malformed
from frontends.http.aiohttp_web import HttpVersion11, web
from frontends.http.content_type_fields import without_repeated
from frontends.http.errors import refusal
from frontends.http.incoming_messages import IncomingMessages
from frontends.http.message import HttpRequest
from frontends.http.native.framing import Framing
from frontends.http.request_timeouts import TOO_SLOW, UnfinishedRequest
from frontends.http.sending import response_of
from frontends.shared.access import ActiveCall

if TYPE_CHECKING:
    from frontends.http.connections import Connections

logger = logging.getLogger("core")


class AiohttpConnection(web.RequestHandler):
    """One connection. Malformed HTTP is refused in the form of the protocol's errors.

    is_fallback   whether a FastConnection passes its data; that one then counts memory and checks framing
    """

    __slots__ = (
        "_framing",
        "_unread",
        "active",
        "busy",
        "call",
        "came",
        "cors",
        "drops_followers",
        "heard",
        "incoming",
        "is_fallback",
        "load_reports",
        "share",
        "used",
    )

    def __init__(self, manager: Connections, share: Share, *, is_fallback: bool, **options: Any):
        super().__init__(manager, **options)
        self.cors = manager.cors
        self.load_reports = manager.load_reports
        self.share = share  # its part of the memory that all connections may hold
        self.is_fallback = is_fallback
        # Whether it had a request with a body after which the engine drops all further data.
        self.drops_followers = False
        self._framing = Framing()  # the fast path does the same for a fallback connection
        self._unread = 0  # bytes counted for the write buffer of the transport
        self.busy = False  # whether it has a request without a response
        self.used = 0.0  # time.monotonic() when its last request ended; 0.0 before
        self.call: HttpRequest | None = None  # that is being answered
        self.active: ActiveCall | None = None  # that is being answered, with an access policy
        self.came = 0  # bytes received
        self.heard = 0  # of these, those received when its last request ended
        self.incoming: IncomingMessages | None = None  # while it is a WebSocket

    def data_received(self, data: bytes) -> None:
        if self.is_fallback or not data:
            self._feed(data)
            return
        at = 0
        while at < len(data) and self.transport is not None:
            if (self.came == 0 or self.idle) and self._framing.is_at_start():
                rest = without_repeated(data[at:])
                data, at = (data, at) if len(rest) == len(data) - at else (rest, 0)
            end = self._framing.next_part(data, at, self.idle)
            self.drops_followers = self.drops_followers or self._framing.drops_followers()
            self._feed(data[at:end])
            at = end

    def converses(self, incoming: IncomingMessages) -> None:
        """Count what comes from now on, and has come behind the request already, as of a WebSocket."""
        self.incoming = incoming
        incoming.came(self._message_tail)

    def _feed(self, data: bytes) -> None:
        """Pass bytes to aiohttp. If they are malformed, a reader of an unfinished body gets the error too."""
        self.came += len(data)
        if self.incoming is not None:
            if not self.incoming.is_over:
                super().data_received(data)
                self.incoming.came(data)
            return
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
    def _owner(self) -> Connections | None:
        owner: Any = self._manager  # None when the connection is lost
        return owner  # type: ignore[no-any-return]

    @property
    def finishing(self) -> bool:
        """Return whether the server is stopping, so that the next response is the last."""
        owner = self._owner
        return owner is not None and owner.finishing

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
        """Return the request of which the server waits for a part; None if it waits for none."""
        if self.incoming is not None:
            return None if self._reading_paused else self.incoming.unfinished()
        request = self._current_request
        if request is not None and not request.content.is_eof() and not self._reading_paused:
            return UnfinishedRequest(True, self.used, self.came - self.heard)
        if self.idle and self.came > self.heard:
            return UnfinishedRequest(False, self.used, self.came - self.heard)
        return None

    def give_up(self) -> None:
        """Close the connection. If no handler runs, send the response TOO_SLOW before."""
        if self.transport is not None:
            if not self.busy:
                self.transport.write(TOO_SLOW)
            self.force_close()

    @property
    def idle(self) -> bool:
        """Return whether every request whose head has come is answered, so that it waits for the next one."""
        waiter = self._waiter
        return waiter is not None and not waiter.done() and not self._messages

    def finish(self) -> None:
        """Close if no request is being answered. Otherwise the connection closes after the response."""
        # Bytes already written are still sent.
        if not self.busy and self.transport is not None:
            self.transport.close()

    def cut(self) -> None:
        """Close without waiting for a response. Bytes already written are still sent."""
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
            raise ConnectionError("the answer has begun: an error cannot be sent")
        if status >= 500:
            logger.error("HTTP: a request failed", exc_info=exc)
        text = (message or "Bad Request").strip().splitlines()[0].rstrip(":")
        # The engine treats a request that it could not read as HTTP/1.0.
        request._version = HttpVersion11
        response = response_of(refusal(status, text), request)
        response.force_close()
        owner = self._owner
        if owner is not None and owner.access_log is not None:
            write_malformed(owner.access_log, request, status, response)
        return response


def connection_of(request: web.BaseRequest) -> AiohttpConnection:
    connection = request.protocol
    assert isinstance(connection, AiohttpConnection)
    return connection
