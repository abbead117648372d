"""ServerConnection: one connection to a server, which carries one request at a time.

ForwardedRequest ─► [ServerConnection.send] ─► server ─► response_head ─► ForwardedRequest ─► client
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any

from core_router.http.chunks import BadChunk, ChunkScanner
from core_router.http.heads import CHUNKED, MOST_BYTES, UNTIL_CLOSE, BadHead, response_head

if TYPE_CHECKING:
    from core_router.http.forward import ForwardedRequest
    from core_router.http.heads import ResponseHead
    from core_router.servers.server import Server


class ServerConnection:
    """A connection to a server: idle in its pool, busy with one request, or closed.

    The protocol of its transport. Event loop only.

    request   the request that it carries
    used_s    time of the monotonic clock when it last became idle
    """

    def __init__(self, server: Server):
        self.server = server
        self.request: ForwardedRequest | None = None
        self.used_s = 0.0
        self._transport: Any = None
        self._start = b""  # of an incomplete head
        self._head: ResponseHead | None = None
        self._left = 0  # bytes of the body that are still to come, or UNTIL_CLOSE
        self._chunks: ChunkScanner | None = None
        self._is_paused = False

    # methods of a protocol ------------------------------------------------

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        request = self.request
        if request is None:
            self.close()  # a response without a request: nothing on this connection can be trusted
        elif self._head is None:
            self._begin(request, self._start + data if self._start else data)
        else:
            self._go_on(request, data, 0)

    def eof_received(self) -> bool | None:
        return None  # the transport closes, and connection_lost follows

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        request = self.request
        if request is None:
            if self in self.server.idle:
                self.server.idle.remove(self)
            return
        if self._head is not None and self._left == UNTIL_CLOSE and error is None:
            self._complete(request, b"")
            return
        self._leave()
        request.lost(self, error, self._head is not None)

    def pause_writing(self) -> None:
        if self.request is not None:
            self.request.client.pause_reading()

    def resume_writing(self) -> None:
        if self.request is not None:
            self.request.client.resume_reading()

    # for ForwardedRequest -------------------------------------------------

    def send(self, request: ForwardedRequest, data: bytes) -> None:
        """Send a request, or its first piece."""
        self.request = request
        self._head = None
        self._start = b""
        self.server.busy.add(self)
        self._transport.write(data)

    def send_more(self, data: bytes) -> None:
        """Send another piece of the request, or of a tunnel."""
        if self._transport is not None:
            self._transport.write(data)

    def pause_reading(self) -> None:
        """Receive no more until `resume_reading`: the client does not take what there is."""
        if self._transport is not None and not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self._transport is not None and self._is_paused:
            self._is_paused = False
            self._transport.resume_reading()

    def close(self) -> None:
        """Close the connection. The server cancels the request that it carries."""
        if self._transport is not None:
            self._transport.abort()

    def abandon(self) -> None:
        """Close the connection; its request is no longer interested."""
        self._leave()
        self.close()

    # the response ---------------------------------------------------------

    def _begin(self, request: ForwardedRequest, data: bytes) -> None:
        """Process the start of a response."""
        end = data.find(b"\r\n\r\n") + 4
        if end == 3:
            self._start = data
            if len(data) > MOST_BYTES:
                self._break(request, f"the head of the response is larger than {MOST_BYTES} bytes")
            return
        try:
            head = response_head(data[:end])
        except BadHead as error:
            self._break(request, error.text)
            return
        if head.status < 200 and head.status != 101:
            # 100 Continue: the router has answered the client's Expect itself.
            self._start = b""
            if end < len(data):
                self._begin(request, data[end:])
            return
        self._head = head
        self._chunks = None
        self._left = 0 if request.head.method == b"HEAD" else head.body_size
        if head.status == 101:
            self._left = UNTIL_CLOSE
            request.client.begin_tunnel()
        elif self._left == CHUNKED:
            self._chunks = ChunkScanner()
        if request.moves(head):
            self._release(head, end + self._left == len(data))
            request.move_on(head)
            return
        if end + self._left == len(data) and head.is_same and not request.closes(head):
            self._complete(request, data)  # all of it, as it came
            return
        request.client.write(head.closing() if request.closes(head) else head.passed_on)
        self._go_on(request, data, end)

    def _go_on(self, request: ForwardedRequest, data: bytes, at: int) -> None:
        """Pass on the bytes of the body, from `at` on."""
        size = len(data)
        if self._chunks is not None:
            try:
                end = self._chunks.feed(data, at)
            except BadChunk as error:
                self._break(request, str(error))
                return
            is_complete = self._chunks.done
        elif self._left == UNTIL_CLOSE:
            end, is_complete = size, False
        else:
            end = min(size, at + self._left)
            self._left -= end - at
            is_complete = not self._left
        piece = data if at == 0 and end == size else data[at:end]
        if not is_complete:
            if piece:
                request.client.write(piece)
            return
        if end < size:
            self._start = data[end:]  # more than the response: the connection is not used again
        self._complete(request, piece)

    def _complete(self, request: ForwardedRequest, last: bytes) -> None:
        """Become idle, then pass on the last bytes of the response."""
        head = self._head
        assert head is not None
        is_whole = self._chunks is not None or self._left != UNTIL_CLOSE
        self._release(head, is_whole and not self._start and request.is_sent)
        request.complete(head, last)

    def _release(self, head: ResponseHead, is_whole: bool) -> None:
        """Become idle if the connection can carry another request, else close it.

        is_whole   whether it has carried a whole request and a whole response
        """
        self._leave()
        if (
            is_whole
            and head.keep_alive
            and self._transport is not None
            and not self.server.is_removed
        ):
            self.resume_reading()
            self.used_s = monotonic()
            self.server.idle.append(self)
        else:
            self.close()

    def _break(self, request: ForwardedRequest, text: str) -> None:
        """End the connection, whose bytes are not HTTP."""
        has_begun = self._head is not None
        self.abandon()
        request.lost(self, ConnectionError(text), has_begun)

    def _leave(self) -> None:
        self.request = None
        self.server.busy.discard(self)
