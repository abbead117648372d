"""Compressed messages: gzip and deflate, of requests and of responses.

A small message is packed and unpacked at once; a large one on a thread, so that nobody waits for it.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable
from typing import TypeVar

from core.tensor import Buffer
from frontends.grpc.method import Message
from frontends.grpc.status import Code

# zlib's word for the form, by the number of the encoding: 1 for gzip, 2 for deflate with its header.
_WINDOW_BITS = {1: 31, 2: 15}
_AT_ONCE_BYTES = 256 * 1024

Result = TypeVar("Result")


class Unreadable(Exception):
    """A message that cannot be unpacked.

    code   the status that the call ends with
    """

    def __init__(self, code: Code, text: str):
        super().__init__(text)
        self.code = code


async def unpack(data: bytes, encoding: int, most_bytes: int) -> bytes:
    """The message in `data`. Raises Unreadable for one that is broken or larger than `most_bytes`."""
    found = _unpacked(data, encoding, min(_AT_ONCE_BYTES, most_bytes))
    if found is None:
        found = await _elsewhere(lambda: _unpacked(data, encoding, most_bytes))
    if found is None:
        raise Unreadable(
            Code.RESOURCE_EXHAUSTED,
            f"Received message larger than max (decompressed, more than {most_bytes})",
        )
    return found


def _unpacked(data: bytes, encoding: int, most_bytes: int) -> bytes | None:
    """None if the message is larger than `most_bytes`; no more than that is ever made."""
    unpacker = zlib.decompressobj(_WINDOW_BITS[encoding])
    try:
        found = unpacker.decompress(data, most_bytes + 1)
    except zlib.error as error:
        raise Unreadable(Code.INTERNAL, f"a compressed message is broken: {error}") from None
    if len(found) > most_bytes:
        return None
    if not unpacker.eof or unpacker.unused_data:
        raise Unreadable(Code.INTERNAL, "a compressed message does not end where it should")
    return found


async def pack(message: Message, encoding: int, level: int) -> tuple[Message, bool]:
    """`message` as it should be sent, and whether that is compressed: only if it became smaller."""
    parts: list[Buffer] = [message] if isinstance(message, bytes) else message
    views = [memoryview(part) for part in parts]
    size = sum(view.nbytes for view in views)

    def packed() -> bytes:
        packer = zlib.compressobj(level, zlib.DEFLATED, _WINDOW_BITS[encoding])
        return b"".join([*(packer.compress(view) for view in views), packer.flush()])

    found = packed() if size <= _AT_ONCE_BYTES else await _elsewhere(packed)
    return (found, True) if len(found) < size else (message, False)


async def _elsewhere(work: Callable[[], Result]) -> Result:
    return await asyncio.get_running_loop().run_in_executor(None, work)
