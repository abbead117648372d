"""MessageScanner: the messages in the bytes of a stream, each with its prefix."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

PREFIX = 5  # bytes before each message: whether it is compressed, and its size


class MessageScanner:
    """Collects the bytes of one direction of a stream.

    size   bytes of the incomplete message that have come
    """

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self.size = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take bytes; yield each message that is complete, with its prefix."""
        self._pieces.append(data)
        self.size += len(data)
        while self.size >= PREFIX:
            if len(self._pieces[0]) < PREFIX:
                self._pieces = [b"".join(self._pieces)]
            whole = PREFIX + int.from_bytes(self._pieces[0][1:PREFIX], "big")
            if self.size < whole:
                return
            joined = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
            self._pieces = [joined[whole:]] if len(joined) > whole else []
            self.size -= whole
            yield joined if len(joined) == whole else joined[:whole]


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
