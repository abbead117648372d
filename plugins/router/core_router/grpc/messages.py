"""MessageScanner: the messages in the bytes of a stream, each with its prefix."""

from __future__ import annotations

import sys
import zlib

from core_router.pieces import Pieces

PREFIX = 5  # bytes before each message: whether it is compressed, and its size


class MessageScanner:
    """Collects the bytes of one direction of a stream."""

    def __init__(self) -> None:
        self._pieces = Pieces()
        self._wanted = PREFIX  # bytes until there is a message, or its size

    @property
    def size(self) -> int:
        """Bytes that have come, and are not taken yet."""
        return self._pieces.size

    @property
    def has_more(self) -> bool:
        """Whether `take` may find a message."""
        return self._pieces.size >= self._wanted

    def is_next(self, data: bytes) -> bool:
        """Return whether bytes are just the next message, as most are. They need not be added then."""
        return len(data) == PREFIX + int.from_bytes(data[1:PREFIX], "big") and not self._pieces.size

    def feed(self, data: bytes) -> list[bytes]:
        """Append bytes; return the messages that are complete, each with its prefix."""
        if self.is_next(data):
            return [data]
        self._pieces.add(data)
        return self.take()

    def add(self, data: bytes) -> None:
        """Append bytes, without a look at them."""
        self._pieces.add(data)

    def take(self, most: int = sys.maxsize) -> list[bytes]:
        """Return the messages that are complete, each with its prefix, and no more than `most` of them."""
        found: list[bytes] = []
        if not self.has_more or not most:
            return found
        joined = self._pieces.join()
        at, end = 0, len(joined)
        while True:
            start = at + PREFIX
            known = end >= start
            whole = PREFIX + int.from_bytes(joined[at + 1 : start], "big") if known else PREFIX
            if not known or end - at < whole or len(found) == most:
                break
            found.append(joined[at : at + whole])
            at += whole
        if at < end:
            self._pieces.add(joined[at:])
        self._wanted = whole
        return found


def may_have(message: bytes, name: bytes, most: int) -> bool:
    """Return whether a message has a name, or cannot be read.

    message   with its prefix
    most      bytes of a compressed message that are unpacked
    """
    found, _ = plain(message, most)
    is_cut = bool(message[:1] != b"\0" and len(found) >= most)
    return name in found or is_cut or not found


def plain(message: bytes, most: int) -> tuple[bytes, int]:
    """Return bytes that have a message, or its begin, without compression, and where it is in them.

    message   with its prefix
    most      bytes of a compressed message that are unpacked
    """
    if not message or not message[0]:
        return message, PREFIX
    try:
        # zlib knows the header of gzip, too.
        unpacked = zlib.decompressobj(32 + zlib.MAX_WBITS).decompress(message[PREFIX:], most)
        return unpacked, 0
    except zlib.error:
        return b"", 0  # the server says what is wrong
