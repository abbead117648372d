"""ClientConnection: one connection of a client, whose requests are answered one after the other.

bytes ─► request_head ─► Route ─► [ClientConnection] ─► ForwardedRequest, or own_answers
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from core_router.http.body import IncomingBody
from core_router.http.chunks import BadChunk
from core_router.http.client_transport import ClientTransport
from core_router.http.forward import ForwardedRequest
from core_router.http.heads import CHUNKED, MOST_BYTES, UNTIL_CLOSE, BadHead, request_head
from core_router.http.own_answers import differ, handle
from core_router.http.refusals import no_head, without_room
from core_router.http.responses import error_body, response
from core_router.http.sequence_parameters import names_sequence, sequence_of
from core_router.targets import Purpose, Target

if TYPE_CHECKING:
    from core_router.http.heads import RequestHead, ResponseHead
    from core_router.router import Router
    from core_router.servers.table import Route

_MOST_AT_ONCE = 100  # requests that one turn of the event loop begins on a connection

# What a connection waits for: a request; the rest of its body; the response; bytes of another protocol; the
# client, which reads the last response.
_IDLE, _RECEIVING, _WAITING, _TUNNEL, _ENDING = range(5)


class ClientConnection(ClientTransport):
    """A connection of a client: the protocol of its transport. Event loop only.

    request    what is being forwarded; a copy may take its place
    active_s   time of the router's clock when bytes arrived last, or when a request was last seen in progress
    """

    def __init__(self, router: Router):
        ClientTransport.__init__(self)
        self.active_s = router.now_s
        self._router = router
        self._phase = _IDLE
        self._head: RequestHead | None = None
        self._route: Route | None = None
        self._body: IncomingBody | None = None
        self.request: ForwardedRequest | None = None
        self._is_beginning = False
        self._is_late = False  # the next request is begun after other connections had their turn
        self._is_full = False  # the client does not read: what it was sent waits here

    # methods of a protocol ------------------------------------------------

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        if not self._router.enter(self):
            self.refuse(503, "the router has --max-connections clients", retry_after_s=1)

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._router.clients.discard(self)
        self._forget()
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def data_received(self, data: bytes) -> None:
        self.active_s = self._router.now_s
        phase = self._phase
        if phase == _IDLE and not self._is_full and not self._is_late:
            self._rest = self._rest + data if self._rest else data  # after the start of a head
            self._begin_rest()
        elif phase == _RECEIVING:
            self._receive(data, 0)
        elif phase == _TUNNEL and self.request is not None:
            self.request.more(data, False)
        elif phase in (_IDLE, _WAITING):
            self._keep(data)

    def pause_writing(self) -> None:
        self._is_full = True
        if self.request is not None:
            self.request.pause()

    def resume_writing(self) -> None:
        self._is_full = False
        self.active_s = self._router.now_s
        if self.request is not None:
            self.request.resume()
        if self._phase == _IDLE:
            self._begin_rest()

    # requests -------------------------------------------------------------

    def _begin_rest(self) -> None:
        """Begin the next request of the received bytes, and those after it that are answered at once."""
        if self._is_beginning or self._is_late:
            return  # the caller's loop goes on, or the next turn does
        self._is_beginning = True
        count = 0
        while self._phase == _IDLE and self._rest and not self._is_full:
            if count == _MOST_AT_ONCE:
                self._is_late = True
                asyncio.get_running_loop().call_soon(self._begin_late)
                break
            count += 1
            data, at = self._rest, self._at
            self._rest, self._at = b"", 0
            if not self._begin(data, at):
                break
        self._is_beginning = False
        if self._is_held:
            self._receive_more()

    def _begin_late(self) -> None:
        self._is_late = False
        if self._transport is not None:
            self._begin_rest()

    def _begin(self, data: bytes, at: int) -> bool:
        """Begin the request at `at`. The bytes after it stay in `_rest`.

        Return False for an incomplete head, which stays there, too.
        """
        end = data.find(b"\r\n\r\n", at) + 4
        if end == 3 and len(data) - at <= MOST_BYTES and data[at : at + 1].isupper():
            self._rest = data[at:]
            return False
        try:
            if end == 3 or end - at > MOST_BYTES:
                raise no_head(data[at : at + 1])
            head = request_head(data[at:end])
        except BadHead as error:
            self.refuse(error.status, error.text)
            return True
        self._head = head
        self._route = self._router.table.find(head.method, head.target)
        size = head.body_size
        if size == CHUNKED or end + size > len(data):
            self._begin_body(data, end)
            return True
        end_of_body = end + size
        if end_of_body < len(data):
            self._rest, self._at = data, end_of_body
        if not head.is_same:
            self._dispatch(head.passed_on + data[end:end_of_body], len(head.passed_on))
        elif at or end_of_body < len(data):
            self._dispatch(data[at:end_of_body], end - at)
        else:
            self._dispatch(data, end)
        return True

    def _begin_body(self, data: bytes, at: int) -> None:
        """Begin a request whose body is not complete."""
        head, limits = self._head, self._router.limits
        assert head is not None
        if head.body_size > limits.body_bytes > 0:
            self.refuse(413, f"the body is larger than --max-body-bytes={limits.body_bytes}")
            return
        if head.expects:
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self._phase = _RECEIVING
        most = limits.kept_body_bytes
        # The model is in the body: a larger one is read as a whole, too. Chunks would have to be joined.
        if self._route is not None and self._route.purpose is Purpose.NAMED_IN_BODY:
            most = most if head.body_size == CHUNKED else limits.named_body_bytes
        self._body = IncomingBody(self._router, head, most)
        if not self._body.is_kept:
            self._stream(self._body.message())
        self._receive(data, at)

    def _receive(self, data: bytes, at: int) -> None:
        """Process bytes of the body, from `at` on: keep them, or pass them on."""
        body, head = self._body, self._head
        if body is None or head is None:
            return  # it was refused
        try:
            piece, is_last = body.take(data, at)
        except BadChunk as error:
            self.refuse(400, str(error))
            return
        if at + len(piece) < len(data):
            self._rest, self._at = data, at + len(piece)
        if body.is_kept:
            if is_last:
                self._dispatch(body.message(), len(head.passed_on))
            return
        if self.request is None:
            self._stream(body.message())
        if self.request is not None:
            if is_last:
                self._phase = _WAITING
            self.request.more(piece, is_last)

    def _stream(self, first: bytes) -> None:
        """Send the first bytes of a request to a server; the rest follows piece by piece."""
        route, head, body = self._route, self._head, self._body
        assert route is not None and head is not None and body is not None
        body.release()
        if route.purpose in (Purpose.EVERY, Purpose.INDEX) or route.is_stateful:
            most = self._router.limits.kept_body_bytes
            self.refuse(413, f"the body is larger than --kept-body-bytes={most}")
            return
        if route.purpose is Purpose.NAMED_IN_BODY and differ(self._router.table.in_use()):
            self.refuse(*without_room(head.body_size, self._router.limits))
            return
        if route.purpose in (Purpose.LIVE, Purpose.READY, Purpose.STATISTICS):
            route = self._router.table.route(Target(Purpose.ANY))
        # The variable keeps it, here and below: a refusal ends it within `start`.
        request = self.request = ForwardedRequest(self._router, self, head, route)
        request.start(first, False)
        if self._is_full:  # since 100 Continue, or by answers before this request
            request.pause()

    def _dispatch(self, message: bytes, body_at: int) -> None:
        """Answer a request that has come as a whole, or forward it.

        message   its bytes for a server, with the body from `body_at` on
        """
        self._phase = _WAITING
        route, head = self._route, self._head
        assert route is not None and head is not None
        if route.is_plain and not (
            route.is_inference and names_sequence(message, body_at, head.json_size)
        ):
            request = self.request = ForwardedRequest(self._router, self, head, route)
            request.start(message, True)
            if self._is_full:
                request.pause()
        else:
            handle(self._router, self, head, route, message, body_at)

    # for own_answers ------------------------------------------------------

    def forward(self, route: Route, message: bytes, body_at: int) -> None:
        """Forward a request that may belong to a sequence."""
        head = self._head
        assert head is not None
        sequence = None
        if route.is_inference and (
            route.is_stateful or names_sequence(message, body_at, head.json_size)
        ):
            sequence = sequence_of(message[body_at:], head.json_size)
        request = self.request = ForwardedRequest(self._router, self, head, route, sequence)
        request.start(message, True)
        if self._is_full:
            request.pause()

    def answer(self, status: int, body: bytes, retry_after_s: int | None = None) -> None:
        """Send an answer of the router itself."""
        head = self._head
        closes = (
            self._phase != _WAITING
            or self._router.is_draining
            or (head is not None and not head.keep_alive)
        )
        is_head = head is not None and head.method == b"HEAD"
        data = response(
            status, body, close=closes, without_body=is_head, retry_after_s=retry_after_s
        )
        self.complete(data, closes)

    # for ForwardedRequest -------------------------------------------------

    def closes(self, head: ResponseHead) -> bool:
        """Return whether the connection ends with a response."""
        request_head = self._head
        assert request_head is not None
        return (
            not request_head.keep_alive
            or self._router.is_draining
            or (head.body_size == UNTIL_CLOSE and request_head.method != b"HEAD")
        ) and head.status != 101

    def complete(self, last: bytes, closes: bool) -> None:
        """Send the last bytes of a response; then begin the next request."""
        self.request = None
        if self._body is not None:
            self._body.release()
            self._body = None
        if self._transport is None:
            return
        if last:
            self._transport.write(last)
        if closes or self._phase == _TUNNEL:
            is_received = self._phase in (_WAITING, _TUNNEL)
            self._phase = _ENDING
            self._rest, self._at = b"", 0
            if is_received:
                self.close()
            else:
                self.close_slowly()
            return
        self._phase = _IDLE
        if self._is_paused:
            self.resume_reading()
        if self._rest and not self._is_beginning:
            self._begin_rest()

    def refuse(self, status: int, text: str, retry_after_s: int | None = None) -> None:
        """Answer with an error. The connection ends with it if the request has not come as a whole."""
        if self._phase == _RECEIVING:
            self._forget()
        self.answer(status, error_body(text), retry_after_s)

    def _forget(self) -> None:
        """Cancel the request, if there is one."""
        request, self.request = self.request, None
        if request is not None:
            request.cancel()
        if self._body is not None:
            self._body.release()
            self._body = None

    def begin_tunnel(self) -> None:
        """Pass all bytes on in both directions: the server has accepted another protocol."""
        self._phase = _TUNNEL
        if self._rest and self.request is not None:
            rest = self._rest[self._at :]
            self._rest, self._at = b"", 0
            self._receive_more()
            self.request.more(rest, False)

    def expire(self, now_s: float, idle_s: float, client_s: float) -> None:
        """End the connection if the client sends nothing for too long.

        now_s      time of the router's clock
        idle_s     seconds that a connection without a request may last
        client_s   seconds after which a client must go on with a request
        """
        waits_s = now_s - self.active_s
        if self._phase == _IDLE and not self._rest:
            if waits_s >= idle_s:
                self.close()
        elif self._phase == _WAITING:
            self.active_s = now_s  # the connection is idle from the end of the response on
        elif self._phase == _IDLE and (self._is_full or self._is_late):
            pass  # whole requests may wait until the client reads, or for their turn
        elif self._phase in (_IDLE, _RECEIVING) and not self._is_paused and waits_s > client_s:
            self.refuse(408, "the rest of the request did not arrive")
