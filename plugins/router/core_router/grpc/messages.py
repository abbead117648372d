"""MessageScanner: the messages in the bytes of a stream, each with its prefix."""

from __future__ import annotations

import zlib

PREFIX = 5  # bytes before each message: whether it is compressed, and its size


class MessageScanner:
    """Collects the bytes of one direction of a stream.

    size   bytes of the incomplete message that have come
    """

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._wanted = PREFIX  # bytes until there is a message, or its size
        self.size = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Take bytes; return the messages that are complete, each with its prefix."""
        self._pieces.append(data)
        self.size += len(data)
        found: list[bytes] = []
        if self.size < self._wanted:
            return found
        joined = b"".join(self._pieces)
        at, end = 0, len(joined)
        while True:
            start = at + PREFIX
            known = end >= start
            whole = PREFIX + int.from_bytes(joined[at + 1 : start], "big") if known else PREFIX
            if not known or end - at < whole:
                break
            found.append(joined[at : at + whole])
            at += whole
        self._pieces = [joined[at:]] if at < end else []
        self._wanted = whole
        self.size = end - at
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
