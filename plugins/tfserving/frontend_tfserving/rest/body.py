"""unpacked: the body of a request, without its Content-Encoding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.errors import unsupported
from core.tensor import Buffer
from frontends.http.background import turn
from frontends.http.codec import compression
from frontends.http.message import HttpRequest
from frontends.http.options import HttpOptions

if TYPE_CHECKING:
    from core.server import InferenceServer

_UNPACKED = "the unpacked body of a request"


async def unpacked(server: InferenceServer, call: HttpRequest) -> Buffer:
    """Return the body, unpacked on another thread if it is large. Event loop only.

    --http-max-input-size bounds it. Bytes that the packed size does not pay for are held by the connection's
    share. Raises CoreError(UNSUPPORTED) for another encoding than gzip and deflate, CoreError(INVALID) for
    damaged data and for too many bytes, and MemoryExhausted.
    """
    encoding = call.headers.get("Content-Encoding")
    if encoding is None or encoding == compression.IDENTITY:
        return call.body
    if not compression.known(encoding):
        raise unsupported(f"Content-Encoding is '{encoding}'; expected {compression.OFFERED}")
    most = HttpOptions.of(server.options).http_max_input_size
    unpacking = compression.Unpacking(call.body, encoding, most)
    if unpacking.at_once():
        return unpacking.plain
    async with turn():
        found = await unpacking.rest(lambda size: call.share.take_unpaid(size, _UNPACKED))
    call.share.take(len(found), _UNPACKED)
    return found
