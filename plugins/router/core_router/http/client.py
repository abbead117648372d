"""ClientConnection: one connection of a client, whose requests are answered one after the other.

bytes ─► request_head ─► Route ─► [ClientConnection] ─► ForwardedRequest, or an answer of the router itself
"""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import TYPE_CHECKING, Any

from core_router.http.chunks import BadChunk, ChunkScanner
from core_router.http.forward import ForwardedRequest
from core_router.http.heads import CHUNKED, MOST_BYTES, UNTIL_CLOSE, BadHead, request_head
from core_router.http.responses import error_body, response
from core_router.http.sequence_parameters import model_in, sequence_of
from core_router.http.targets import Purpose, Target

if TYPE_CHECKING:
    from core_router.http.heads import RequestHead, ResponseHead
    from core_router.router import Router
    from core_router.servers.table import Route

_MOST_EARLY = 64 * 1024  # bytes after a request that are received before its response
_LINGER_S = 2.0  # in which a client reads the response to a request that it is still sending


# What a connection waits for: a request; the rest of a body, which is kept, or passes piece by piece; the response;
# bytes of another protocol; the client, which reads the last response.
_IDLE, _COLLECTING, _STREAMING, _WAITING, _TUNNEL, _ENDING = range(6)


class ClientConnection:
    """A connection of a client: the protocol of its transport. Event loop only.

    active_s   time of the router's clock when bytes arrived last
    """

    def __init__(self, router: Router):
        self._phase = _IDLE
        self.active_s = router.now_s
        self._router = router
        self._transport: Any = None
        self._rest = b""  # bytes that are not processed yet
        self._head: RequestHead | None = None
        self._route: Route | None = None
        self._request: ForwardedRequest | None = None
        self._task: asyncio.Task[None] | None = None
        self._pieces: list[bytes] = []  # of the message, while COLLECTING
        self._left = 0  # bytes of the body that are still to come
        self._chunks: ChunkScanner | None = None
        self._kept = 0  # bytes of the body that count against the limit of all connections
        self._is_paused = False
        self._is_beginning = False

    # methods of a protocol ------------------------------------------------

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        if not self._router.enter(self):
            self.refuse(503, "the router has --max-connections clients", retry_after_s=1)

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._router.clients.discard(self)
        self._release()
        if self._request is not None:
            self._request.cancel()
            self._request = None
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def eof_received(self) -> bool | None:
        return None  # a client that sends no more gets no response: the transport closes

    def data_received(self, data: bytes) -> None:
        self.active_s = self._router.now_s
        phase = self._phase
        if phase == _IDLE:
            self._rest = self._rest + data if self._rest else data
            self._begin_rest()
        elif phase == _COLLECTING or phase == _STREAMING:
            self._receive(data, 0)
        elif phase == _WAITING:
            self._rest += data
            if len(self._rest) > _MOST_EARLY:
                self.pause_reading()
        elif phase == _TUNNEL and self._request is not None:
            self._request.more(data, False)

    def pause_writing(self) -> None:
        if self._request is not None:
            self._request.pause()

    def resume_writing(self) -> None:
        if self._request is not None:
            self._request.resume()

    # requests -------------------------------------------------------------

    def _begin_rest(self) -> None:
        """Begin the next request of the received bytes, and those after it that are answered at once."""
        if self._is_beginning:
            return  # the caller's loop goes on
        self._is_beginning = True
        while self._phase == _IDLE and self._rest:
            data, self._rest = self._rest, b""
            self._begin(data)
            if self._rest is data:
                break  # an incomplete head
        self._is_beginning = False

    def _begin(self, data: bytes) -> None:
        """Begin the request at the start of `data`. Keep the bytes of an incomplete head in `_rest`."""
        end = data.find(b"\r\n\r\n") + 4
        if end == 3 or end > MOST_BYTES:
            if len(data) > MOST_BYTES or not data[:1].isupper():
                self._refuse_head(data)
            else:
                self._rest = data
            return
        try:
            head = request_head(data[:end])
        except BadHead as error:
            self.refuse(error.status, error.text, closes=True)
            return
        self._head = head
        self._route = self._router.table.find(head.method, head.target)
        size = head.body_size
        if size == CHUNKED or end + size > len(data):
            self._begin_body(data, end, size)
            return
        end_of_body = end + size
        if end_of_body < len(data):
            self._rest = data[end_of_body:]
            data = data[:end_of_body]
        if head.is_same:
            self._dispatch(data, end)
        else:
            self._dispatch(head.passed_on + data[end:], len(head.passed_on))

    def _refuse_head(self, data: bytes) -> None:
        if data[:1].isupper():
            self.refuse(
                431, f"the head of the request is larger than {MOST_BYTES} bytes", closes=True
            )
        else:
            self.refuse(400, "these bytes are not HTTP/1.1", closes=True)

    def _begin_body(self, data: bytes, at: int, size: int) -> None:
        """Begin a request whose body is not complete: keep it until it is, or pass it on piece by piece."""
        head, limits = self._head, self._router.limits
        assert head is not None and self._route is not None
        if size > limits.body_bytes > 0:
            self.refuse(
                413, f"the body is larger than --max-body-bytes={limits.body_bytes}", closes=True
            )
            return
        if head.expects:
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self._chunks = ChunkScanner() if size == CHUNKED else None
        self._left = size
        self._pieces = [head.passed_on]
        if self._keep(max(size, 0)):
            self._phase = _COLLECTING
        else:
            self._stream()
        self._receive(data, at)

    def _receive(self, data: bytes, at: int) -> None:
        """Process bytes of the body, from `at` on."""
        size = len(data)
        if self._chunks is not None:
            try:
                end = self._chunks.feed(data, at)
            except BadChunk as error:
                self._fail(400, str(error))
                return
            is_last = self._chunks.done
            if self._phase == _COLLECTING and not self._keep(end - at):
                self._stream()
        else:
            end = min(size, at + self._left)
            self._left -= end - at
            is_last = not self._left
        piece = data if at == 0 and end == size else data[at:end]
        self._rest = data[end:]
        if self._phase == _COLLECTING:
            self._pieces.append(piece)
            if is_last:
                message, self._pieces = b"".join(self._pieces), []
                assert self._head is not None
                self._dispatch(message, len(self._head.passed_on))
        elif self._phase == _STREAMING and self._request is not None:
            if is_last:
                self._phase = _WAITING
            self._request.more(piece, is_last)

    def _keep(self, size: int) -> bool:
        """Count bytes of a body as kept. Return False if it must pass piece by piece."""
        limits, router = self._router.limits, self._router
        if (
            self._kept + size > limits.kept_body_bytes
            or router.kept_bytes + size > limits.kept_bytes
        ):
            return False
        self._kept += size
        router.kept_bytes += size
        return True

    def _release(self) -> None:
        self._router.kept_bytes -= self._kept
        self._kept = 0
        self._pieces = []

    def _stream(self) -> None:
        """Send what there is of a request to a server; the rest follows piece by piece."""
        route, head = self._route, self._head
        assert route is not None and head is not None
        data = b"".join(self._pieces)
        self._release()
        if route.purpose in (Purpose.EVERY, Purpose.INDEX) or route.is_stateful:
            self._fail(
                413,
                f"the body is larger than --kept-body-bytes={self._router.limits.kept_body_bytes}",
            )
            return
        self._phase = _STREAMING
        if route.purpose in (Purpose.LIVE, Purpose.READY, Purpose.STATISTICS):
            route = self._router.table.route(Target(Purpose.ANY))
        self._request = ForwardedRequest(self._router, self, head, route)
        self._request.start(data, False)

    # the ways of a request ------------------------------------------------

    def _dispatch(self, message: bytes, body_at: int) -> None:
        """Answer a request that is complete.

        message   its bytes for a server, with the body from `body_at` on
        """
        self._phase = _WAITING
        route, head = self._route, self._head
        assert route is not None and head is not None
        if route.is_plain and route.is_known:
            self._request = ForwardedRequest(self._router, self, head, route)
            self._request.start(message, True)
            return
        purpose = route.purpose
        if purpose == Purpose.LIVE or purpose == Purpose.READY:
            self._answer_health(purpose)
        elif purpose in (Purpose.EVERY, Purpose.INDEX, Purpose.STATISTICS):
            self._run(self._answer_of_all(route.target, message[body_at:]))
        else:
            if purpose == Purpose.NAMED_IN_BODY:
                target = Target(purpose, model_in(message[body_at:]))
                self._route = route = self._router.table.route(target)
            if route.is_known or not self._router.may_look():
                self._forward(route, message, body_at)
            else:
                self._run(self._look_and_forward(route.target, message, body_at))

    def _forward(self, route: Route, message: bytes, body_at: int) -> None:
        """Forward a request that may belong to a sequence."""
        head = self._head
        assert head is not None
        sequence = None
        if route.is_stateful and route.is_inference:
            sequence = sequence_of(message[body_at:], head.json_size)
        self._request = ForwardedRequest(self._router, self, head, route, sequence)
        self._request.start(message, True)

    async def _look_and_forward(self, target: Target, message: bytes, body_at: int) -> None:
        """Forward a request for a model that no server had, after the servers were asked again."""
        await self._router.look_again()
        self._task = None
        self._forward(self._router.table.route(target), message, body_at)

    def _run(self, work: Any) -> None:
        self._task = asyncio.get_running_loop().create_task(work)

    def _answer_health(self, purpose: Purpose) -> None:
        is_ready = self._router.table.is_ready() and not self._router.is_draining
        self._answer(200 if purpose == Purpose.LIVE or is_ready else 503, b"")

    async def _answer_of_all(self, target: Target, body: bytes) -> None:
        head = self._head
        assert head is not None
        status, answer = await self._router.answer_of_all(target, head, body)
        self._task = None
        self._answer(status, answer)

    def _answer(self, status: int, body: bytes) -> None:
        """Send an answer of the router itself."""
        head = self._head
        closes = head is None or not head.keep_alive or self._router.is_draining
        is_head = head is not None and head.method == b"HEAD"
        self.complete(response(status, body, close=closes, without_body=is_head), closes)

    # for ForwardedRequest -------------------------------------------------

    def write(self, data: bytes) -> None:
        """Send bytes of a response."""
        if self._transport is not None:
            self._transport.write(data)

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
        self._request = None
        if self._kept:
            self._release()
        if self._transport is None:
            return
        if last:
            self._transport.write(last)
        if closes or self._phase == _TUNNEL:
            self._end()
            return
        self._phase = _IDLE
        if self._is_paused:
            self.resume_reading()
        if self._rest and not self._is_beginning:
            self._begin_rest()

    def refuse(
        self, status: int, text: str, *, closes: bool = False, retry_after_s: int | None = None
    ) -> None:
        """Answer with an error. The connection ends if the request is not complete, too."""
        closes = (
            closes
            or self._phase != _WAITING
            or self._router.is_draining
            or (self._head is not None and not self._head.keep_alive)
        )
        is_head = self._head is not None and self._head.method == b"HEAD"
        self.complete(
            response(
                status,
                error_body(text),
                close=closes,
                without_body=is_head,
                retry_after_s=retry_after_s,
            ),
            closes,
        )

    def abort(self) -> None:
        """End the connection in the middle of a response."""
        self._request = None
        if self._transport is not None:
            # A reset: the end of a response without a size is the end of its connection.
            reset = struct.pack("ii", 1, 0)
            connection = self._transport.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
            self._transport.abort()

    def begin_tunnel(self) -> None:
        """Pass all bytes on in both directions: the server has accepted another protocol."""
        self._phase = _TUNNEL
        if self._rest and self._request is not None:
            rest, self._rest = self._rest, b""
            self._request.more(rest, False)

    def pause_reading(self) -> None:
        """Receive no more until `resume_reading`: the server does not take what there is."""
        if self._transport is not None and not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self._transport is not None and self._is_paused:
            self._is_paused = False
            self._transport.resume_reading()

    # the end --------------------------------------------------------------

    def _fail(self, status: int, text: str) -> None:
        """Answer with an error while a request is being received."""
        if self._request is not None:
            self._request.cancel()
        self.refuse(status, text, closes=True)

    def _end(self) -> None:
        """Close the connection, after the client has read the last response."""
        transport, before = self._transport, self._phase
        self._phase = _ENDING
        self._rest = b""
        if transport is None:
            return
        if before == _WAITING or before == _TUNNEL:
            transport.close()
            return
        # Closing with unread bytes of the client would destroy the response on its way.
        if self._is_paused:
            self.resume_reading()
        if transport.can_write_eof():
            transport.write_eof()
        asyncio.get_running_loop().call_later(_LINGER_S, transport.close)

    def close_if_idle(self) -> None:
        """Close the connection if it has no request."""
        if self._phase == _IDLE and not self._rest and self._transport is not None:
            self._transport.close()

    def expire(self, now_s: float) -> None:
        """End the connection if the client sends nothing for too long.

        now_s   time of the router's clock
        """
        waits_s = now_s - self.active_s
        if self._phase == _IDLE and not self._rest:
            if waits_s > self._router.limits.idle_s and self._transport is not None:
                self._transport.close()
            return
        receives = self._phase in (_IDLE, _COLLECTING, _STREAMING)
        if receives and not self._is_paused and waits_s > self._router.limits.client_s:
            self._fail(408, "the rest of the request did not arrive")
