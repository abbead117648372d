"""The listening engine: aiohttp's low-level server, without its applications and routes.

Here and in frontend.py are the only imports of aiohttp.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing

from core.telemetry.tracing import Trace
from core.tensor import Buffer
from frontends.aiohttp_web import HttpVersion11, web
from frontends.http.codec.limits import MOST_CHUNKS, too_large, too_many_chunks
from frontends.http.errors import refusal
from frontends.http.message import Answer, Parts

logger = logging.getLogger("core")

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Connections(web.Server):
    """Every connection of one port. A handler is cancelled when its client has gone."""

    def __init__(self, handler: Handler):
        super().__init__(
            self._handle, handler_cancellation=True, access_log=None, auto_decompress=False
        )
        self._handler = handler
        self._open: set[web.RequestHandler] = set()
        self._busy: set[web.RequestHandler] = set()  # with a request that has no answer yet
        self._all_closed = asyncio.Event()

    def __call__(self) -> web.RequestHandler:
        return _Connection(self, loop=self._loop, **self._kwargs)

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        self._open.add(handler)
        self._all_closed.clear()

    def connection_lost(
        self, handler: web.RequestHandler, exc: BaseException | None = None
    ) -> None:
        super().connection_lost(handler, exc)
        self._open.discard(handler)
        if not self._open:
            self._all_closed.set()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = request.protocol
        self._busy.add(connection)
        try:
            return await self._handler(request)
        finally:
            self._busy.discard(connection)

    async def drain(self, timeout_s: float) -> None:
        """Close idle connections at once, the others after their answer, or when the time is over."""
        self.pre_shutdown()
        for connection in self._open - self._busy:
            # What is written already still leaves.
            if connection.transport is not None:
                connection.transport.close()
        if self._open:
            try:
                await asyncio.wait_for(self._all_closed.wait(), timeout_s)
            except asyncio.TimeoutError:
                logger.warning("HTTP: %d connections are cut", len(self._open))
        await self.shutdown(0.1)


class _Connection(web.RequestHandler):
    """One connection. What is no HTTP is refused in the form of the protocol's errors."""

    __slots__ = ()

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
        return response


def response_of(answer: Answer, request: web.BaseRequest) -> web.Response:
    """The answer as the engine sends it.

    The connection ends after it when the body of the request was not read to its end: the client
    may never send the rest, and what it sends next would be taken for it.
    """
    response = web.Response(
        status=answer.status, headers={**answer.headers, "Server": "core"}, body=answer.body
    )
    if not request.content.is_eof():
        response.force_close()
    return response


async def send_traced(answer: Answer, trace: Trace, request: web.BaseRequest) -> web.StreamResponse:
    """Send a whole answer here and not behind the handler, so that the trace learns when."""
    trace.stamp("HTTP_SEND_START")
    try:
        response = response_of(answer, request)
        await response.prepare(request)
        await response.write_eof()
        trace.stamp("HTTP_SEND_END")
    finally:
        trace.release()
    return response


async def send(answer: Answer, more: Parts, request: web.BaseRequest) -> web.StreamResponse:
    """Send an answer whose body comes in parts: each when it is there and the client took the last.

    The parts are closed in any end, also when the client goes away.
    """
    response = web.StreamResponse(
        status=answer.status, headers={**answer.headers, "Server": "core"}
    )
    if not request.content.is_eof():
        response.force_close()
    async with aclosing(more):
        await response.prepare(request)
        await response.write(answer.body)
        async for part in more:
            # The engine itself waits for the client only now and then.
            await request.writer.drain()
            await response.write(part)
        await response.write_eof()
    return response


async def read_body(request: web.BaseRequest, most: int) -> Buffer:
    """The whole body as it came, still compressed; copied once if it came in several pieces.

    most   bytes that it may have; a larger one is refused before it is read, or as it grows
    Raises CoreError(INVALID) for that, and for more than MOST_CHUNKS chunks.
    """
    length = request.content_length
    if length is not None and length > most:
        raise too_large(length, most)
    await _continue(request)
    if length is not None:
        return await _read_known(request, length)
    return await _read_chunks(request, most) if request.body_exists else b""


async def _continue(request: web.BaseRequest) -> None:
    """Tell a client that asks first (`Expect: 100-continue`, as curl does) to send its body."""
    if request.headers.get("Expect", "").lower() != "100-continue":
        return
    if request.version >= HttpVersion11 and not request.content.is_eof():
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0  # the answer itself has not begun


async def _read_known(request: web.BaseRequest, length: int) -> Buffer:
    content = request.content
    piece = await content.readany()
    if len(piece) == length:
        return piece
    # Grows with what has come: a length that is only claimed takes no memory.
    body = bytearray(piece)
    while piece := await content.readany():
        body += piece
    return body


async def _read_chunks(request: web.BaseRequest, most: int) -> Buffer:
    body = bytearray()
    chunks = 0
    while True:
        piece, complete = await request.content.readchunk()
        if not piece and not complete:
            return body
        body += piece
        chunks += complete
        if chunks > MOST_CHUNKS:
            raise too_many_chunks()
        if len(body) > most:
            raise too_large(len(body), most)
