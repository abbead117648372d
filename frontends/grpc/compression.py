"""Compressed messages: gzip and deflate, of requests and of responses.

A small message is packed and unpacked on the event loop; a large one on a thread, so that it delays no other
request. The allowed unpacked size grows with the size of the message. Bytes beyond it are unpaid: the sender
sent too few bytes for them. All connections together have a small limit for unpaid bytes
(core.system.account).
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable
from typing import Protocol, TypeVar

from core.tensor import Buffer
from frontends.grpc.method import Message
from frontends.grpc.status import Code

# zlib's window bits, by the number of the encoding: 1 for gzip, 2 for deflate with its header.
_WINDOW_BITS = {1: 31, 2: 15}
_AT_ONCE_BYTES = 256 * 1024

PAID_RATIO = 16  # bytes that each compressed byte pays for; tensors seldom compress better
PAID_BYTES = _AT_ONCE_BYTES  # that are paid for with any message
_STEP_BYTES = 4 * 2**20  # of unpaid bytes that are asked for at a time

Result = TypeVar("Result")


class Unreadable(Exception):
    """A message that cannot be unpacked.

    code   the status that the call ends with
    """

    def __init__(self, code: Code, text: str):
        super().__init__(text)
        self.code = code


class MessageMemory(Protocol):
    """Counts the bytes that a call holds, and the unpaid ones among them.

    `hold` and `hold_unpaid` raise MemoryExhausted instead of counting bytes beyond a limit.
    """

    def hold(self, size: int, what: str) -> None: ...
    def release(self, size: int) -> None: ...
    def hold_unpaid(self, size: int, what: str) -> None: ...
    def release_unpaid(self, size: int) -> None: ...


async def unpack(data: bytes, encoding: int, most_bytes: int, ledger: MessageMemory) -> bytes:
    """Return a message decompressed: the first 256 KiB on the event loop, more on a thread.

    encoding     1 for gzip, 2 for deflate
    most_bytes   limit of the decompressed message
    ledger       counts the decompressed bytes, and the unpaid ones among them, before they are made; the
                 first 256 KiB only later. What is returned stays counted, and after an error all that was
    Raises Unreadable if the message is broken or too large, MemoryExhausted if the ledger refuses its bytes.
    """
    unpacking = _Unpacking(data, encoding, most_bytes)
    try:
        paid = PAID_BYTES + PAID_RATIO * len(data)
        bound = min(_AT_ONCE_BYTES, most_bytes)
        held = unpaid = 0
        over = unpacking.reach(bound)
        while not over:
            # Twice as much, but first all that is paid for and then in steps.
            bound = min(bound * 2, paid) if bound < paid else bound + _STEP_BYTES
            bound = min(bound, most_bytes)
            ledger.hold(bound - held, "a decompressed message")
            held = bound
            if bound > paid + unpaid:
                ledger.hold_unpaid(bound - paid - unpaid, "a compressed message")
                unpaid = bound - paid
            over = await _elsewhere(lambda: unpacking.reach(bound))  # noqa: B023 (it is awaited)
        if held < unpacking.size:
            ledger.hold(unpacking.size - held, "a decompressed message")
        elif held > unpacking.size:
            ledger.release(held - unpacking.size)
        if unpaid:
            ledger.release_unpaid(unpaid - max(0, unpacking.size - paid))
        return unpacking.result()
    except BaseException:
        unpacking.pieces.clear()  # an error that is kept must not keep the bytes
        raise


def unpaid_bytes(data: bytes, unpacked: bytes) -> int:
    """Return how many bytes of the message `unpacked` its compressed form `data` does not pay for."""
    return max(0, len(unpacked) - PAID_BYTES - PAID_RATIO * len(data))


class _Unpacking:
    """Decompresses a message piece by piece. Use it on one thread at a time.

    pieces   decompressed bytes so far
    size     number of these bytes
    """

    def __init__(self, data: bytes, encoding: int, most_bytes: int):
        self._unpacker = zlib.decompressobj(_WINDOW_BITS[encoding])
        self._rest = data
        self._most = most_bytes
        self.pieces: list[bytes] = []
        self.size = 0

    def reach(self, bound: int) -> bool:
        """Decompress at most `bound` + 1 bytes in all; return whether the message is complete within `bound`.

        Raises Unreadable if it is broken or larger than the limit of a message.
        """
        unpacker = self._unpacker
        while not unpacker.eof and self.size <= bound:
            # One byte more than the bound shows whether there is more.
            wanted = bound + 1 - self.size
            try:
                piece = unpacker.decompress(self._rest, wanted)
            except zlib.error as error:
                raise Unreadable(
                    Code.INTERNAL, f"a compressed message is broken: {error}"
                ) from None
            self._rest = unpacker.unconsumed_tail
            self.pieces.append(piece)
            self.size += len(piece)
            if len(piece) < wanted:
                break
        if self.size > self._most:
            raise Unreadable(
                Code.RESOURCE_EXHAUSTED,
                f"Received message larger than max (decompressed, more than {self._most})",
            )
        if self.size > bound:
            return False
        if not unpacker.eof or unpacker.unused_data:
            raise Unreadable(Code.INTERNAL, "a compressed message does not end where it should")
        return True

    def result(self) -> bytes:
        return self.pieces[0] if len(self.pieces) == 1 else b"".join(self.pieces)


async def pack(message: Message, encoding: int, level: int) -> tuple[Message, bool]:
    """Compress a message; one of more than 256 KiB on a thread.

    Return the result and True; if it is not smaller, `message` and False.
    encoding, level   1 for gzip, 2 for deflate; zlib's level
    """
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
