"""Bodies of requests as aiohttp receives them: their limits, and the memory counted for them."""

from __future__ import annotations

from collections.abc import Callable

from core.errors import CoreError
from core.system.account import UNCOUNTED
from core.tensor import Buffer
from frontends.http.aiohttp_web import HttpVersion11, web
from frontends.http.codec.limits import MOST_CHUNKS, too_many_chunks
from frontends.http.native.body_receiver import append
from frontends.http.request_share import RequestShare

_BODY = "the body of the request"


async def read_body(
    request: web.BaseRequest,
    most: int,
    refuse: Callable[[int, int], CoreError],
    share: RequestShare,
) -> Buffer:
    """Read the whole body of a request, and return it as received: a compressed body stays compressed.

    most     limit in bytes. A larger Content-Length is refused before the body is read, chunks as they arrive
    refuse   returns the error for a size and a limit in bytes
    share    counts the bytes of the body as they arrive, but not those of a small body
    Raises CoreError(INVALID) for a body that is too large or has more than MOST_CHUNKS chunks, and
    MemoryExhausted.
    """
    length = request.content_length
    if length is not None and length > most:
        raise refuse(length, most)
    await _continue(request)
    if length is not None:
        return await _read_known(request, length, share)
    return await _read_chunks(request, most, refuse, share) if request.body_exists else b""


async def _continue(request: web.BaseRequest) -> None:
    """Send "100 Continue" to a client of HTTP/1.1 that has asked for it and not yet sent its whole body.

    Such a client, curl for example, waits for it before it sends the body.
    """
    if request.headers.get("Expect", "").lower() != "100-continue":
        return
    if request.version >= HttpVersion11 and not request.content.is_eof():
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0  # the response itself has not begun


async def _read_known(request: web.BaseRequest, length: int, share: RequestShare) -> Buffer:
    content = request.content
    piece = await content.readany()
    if len(piece) == length <= UNCOUNTED:
        return piece
    # Grows with the bytes received: a length that is only claimed takes no memory.
    body = bytearray()
    while piece:
        _add(body, piece, length, share)
        piece = await content.readany()
    return body


def _add(body: bytearray, piece: bytes, most: int, share: RequestShare) -> None:
    """Append a piece to a body, and count the body in `share` once it exceeds UNCOUNTED bytes.

    most   largest size of the whole body in bytes: bounds its spare capacity, and is not checked
    Raises MemoryExhausted.
    """
    if share.held:
        share.take(len(piece), _BODY)
    else:
        share.take_large(len(body) + len(piece), _BODY)
    append(body, piece, most)


async def _read_chunks(
    request: web.BaseRequest,
    most: int,
    refuse: Callable[[int, int], CoreError],
    share: RequestShare,
) -> Buffer:
    body = bytearray()
    chunks = 0
    while True:
        piece, complete = await request.content.readchunk()
        if not piece and not complete:
            return body
        _add(body, piece, most, share)
        chunks += complete
        if chunks > MOST_CHUNKS:
            raise too_many_chunks()
        if len(body) > most:
            raise refuse(len(body), most)
