"""HttpConnection: one connection to the HTTP port of a server of the same process.

HttpForwarder ─► bytes of a request ─► [HttpConnection] ─► head and pieces of its response

It knows the HTTP/1.1 that such a server sends, and gives bytes as they came: no decoding, no cookies, no
redirects. A general client costs more than the rest of the way.
"""

from __future__ import annotations

import asyncio
import ssl
from enum import Enum
from typing import NamedTuple, cast

Fields = list[tuple[bytes, bytes]]

_MOST_UNREAD = 256 * 1024  # bytes, above which the connection stops reading
_JOINED = 64 * 1024  # bytes of a body that is copied behind its head, for one write
_END_OF_LINE = b"\r\n"
_END_OF_HEAD = b"\r\n\r\n"


class ResponseHead(NamedTuple):
    """Status and header fields of a response; the names are in lower case."""

    status: int
    fields: Fields


class _Framing(Enum):
    LENGTH = 1
    CHUNKS = 2
    UNTIL_CLOSE = 3


class HttpConnection(asyncio.Protocol):
    """One connection, for one request after the other: `write`, then `head`, then `piece` until the last one.

    is_open     whether it can take a request: neither side has closed it, and all that came has been read
    idle_s      when its last response ended, by the clock of the loop
    All that waits raises ConnectionError if the server closes the connection, or sends what is not HTTP, or
    a head, a size of a chunk or trailers of more than 256 KiB.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._writable = asyncio.Event()
        self._waiter: asyncio.Future[None] | None = None  # of the coroutine that reads
        self._unread = b""
        self._reading_paused = False
        self._framing = _Framing.LENGTH
        self._left = 0  # bytes of the body, or of the current chunk, that are to come
        self._gap = 0  # bytes of the line end before the size of the next chunk
        self._keeps = True  # whether the server keeps the connection after this response
        self._has_ended = False  # whether the server has sent its last byte
        self._is_cut = False  # whether an error, or this side, has closed the connection
        self._error: BaseException | None = None  # that closed it
        self.idle_s = 0.0

    @classmethod
    async def to(cls, host: str, port: int, secure: ssl.SSLContext | None) -> HttpConnection:
        """Open a connection. Raises OSError."""
        loop = asyncio.get_running_loop()
        _, made = await loop.create_connection(cls, host, port, ssl=secure)
        return made

    # methods of a protocol --------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's has another base class
        self._writable.set()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._transport = None
        self._error = exc
        self._is_cut = self._is_cut or exc is not None
        self._writable.set()
        self._wake()

    def eof_received(self) -> None:
        self._has_ended = True  # with TLS, the transport closes only later

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        self._unread = self._unread + data if self._unread else data
        if len(self._unread) > _MOST_UNREAD and self._transport is not None:
            self._transport.pause_reading()
            self._reading_paused = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # a request --------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        transport = self._transport
        if transport is None or transport.is_closing():
            return False
        return not self._has_ended and not self._unread

    def write(self, head: bytes, body: bytes = b"") -> None:
        """Send a head, or a part of a body, and bytes behind it."""
        if self._transport is None:
            return  # the reader gets the error
        if len(body) <= _JOINED:
            self._transport.write(head + body)
        else:
            self._transport.write(head)
            self._transport.write(body)

    async def written(self) -> None:
        """Wait until the server has read enough for the next part. Raises ConnectionError."""
        await self._writable.wait()
        if self._transport is None:
            raise self._closed()

    def close(self) -> None:
        """Close now: the server cancels a request that has no complete response."""
        if self._transport is not None:
            self._is_cut = True
            self._transport.abort()

    # its response -----------------------------------------------------------------

    async def head(self, method: str) -> ResponseHead:
        """Return the head of the response to a request with this method."""
        while True:
            while (end := self._unread.find(_END_OF_HEAD)) < 0:
                await self._more("a head")
            head, self._unread = self._unread[:end], self._unread[end + len(_END_OF_HEAD) :]
            found = _parsed(head)
            if found.status >= 200:
                self._begin_body(found, method)
                return found

    def _begin_body(self, head: ResponseHead, method: str) -> None:
        known = dict(head.fields)
        self._framing, self._left, self._gap = _Framing.LENGTH, 0, 0
        self._keeps = b"close" not in known.get(b"connection", b"").lower()
        if method == "HEAD" or head.status in (204, 304):
            return
        if b"chunked" in known.get(b"transfer-encoding", b"").lower():
            self._framing = _Framing.CHUNKS
        elif b"content-length" in known:
            self._left = _number(known[b"content-length"], 10)
        else:
            self._framing, self._keeps = _Framing.UNTIL_CLOSE, False

    async def piece(self) -> tuple[bytes, bool]:
        """Return the next bytes of the body, all that have come, and whether they are its last ones."""
        while True:
            found, is_last = self._take()
            self._resume_reading()
            if is_last:
                self.idle_s = self._loop.time()
                if not self._keeps:
                    self.close()
            if found or is_last:
                return found, is_last
            await self._more("the size of a chunk, or trailers,")

    def _take(self) -> tuple[bytes, bool]:
        if self._framing is _Framing.CHUNKS:
            return self._take_chunks()
        if self._framing is _Framing.UNTIL_CLOSE:
            found, self._unread = self._unread, b""
            return found, self._transport is None and not self._is_cut
        found, self._unread = self._unread[: self._left], self._unread[self._left :]
        self._left -= len(found)
        return found, self._left == 0

    def _take_chunks(self) -> tuple[bytes, bool]:
        data, at, parts, is_last = self._unread, 0, [], False
        while True:
            if self._left:
                part = data[at : at + self._left]
                parts.append(part)
                at += len(part)
                self._left -= len(part)
                if self._left:
                    break
            behind = data[at : at + self._gap]
            if not _END_OF_LINE.startswith(behind):
                raise ConnectionError(
                    f"the HTTP port has sent {behind!r} behind a chunk: expected the end of a line"
                )
            line_end = data.find(_END_OF_LINE, at + self._gap)
            if line_end < 0:
                break
            size = _number(data[at + self._gap : line_end].partition(b";")[0], 16)
            if size == 0:
                end = data.find(_END_OF_HEAD, line_end)  # after trailers, if there are any
                if end >= 0:
                    at, is_last = end + len(_END_OF_HEAD), True
                break
            at, self._left, self._gap = line_end + len(_END_OF_LINE), size, len(_END_OF_LINE)
        self._unread = data[at:]
        return b"".join(parts), is_last

    async def _more(self, unread: str) -> None:
        """Wait for more bytes, or for the end of a body that ends with its connection.

        unread   what the bytes that are not taken are a part of, for an error
        """
        if len(self._unread) > _MOST_UNREAD:
            raise ConnectionError(
                f"the HTTP port has sent {unread} of more than {_MOST_UNREAD // 1024} KiB"
            )
        if self._transport is None:
            raise self._closed()
        self._resume_reading()
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _resume_reading(self) -> None:
        if self._reading_paused and self._transport is not None:
            self._reading_paused = False
            self._transport.resume_reading()

    def _closed(self) -> ConnectionError:
        made = ConnectionError(
            "the HTTP port has closed the connection before its response was complete"
        )
        made.__cause__ = self._error
        return made


def _parsed(head: bytes) -> ResponseHead:
    first, *lines = head.split(_END_OF_LINE)
    parts = first.split(b" ", 2)
    if len(parts) < 2 or not parts[0].startswith(b"HTTP/1."):
        raise ConnectionError(f"the HTTP port has sent {first[:80]!r}: expected a status line")
    fields = []
    for line in lines:
        name, _, value = line.partition(b":")
        fields.append((name.lower(), value.strip()))
    return ResponseHead(_number(parts[1], 10), fields)


def _number(text: bytes, base: int) -> int:
    if not text or text.strip(b"0123456789abcdefABCDEF"[: 10 if base == 10 else None]):
        raise ConnectionError(f"the HTTP port has sent {text[:80]!r}: expected a number")
    return int(text, base)
