"""ChunkScanner: finds the end of a body with chunks, whose bytes pass as they are.

without_chunks: what such a body says, once it is complete.
"""

from __future__ import annotations

import re

_SIZE = re.compile(rb"([0-9a-fA-F]{1,15})[ \t]*(?:;[^\x00-\x08\x0a-\x1f\x7f]*)?\r\n")
_LONGEST_LINE = 4096
_MOST_TRAILERS = 16 * 1024

_AT_SIZE, _IN_DATA, _AFTER_DATA, _IN_TRAILERS = range(4)


def without_chunks(body: bytes) -> bytes:
    """Return the data of a complete body in chunks; any other body as it is."""
    pieces, at = [], 0
    while (line := _SIZE.match(body, at)) is not None and (size := int(line[1], 16)):
        pieces.append(body[line.end() : line.end() + size])
        at = line.end() + size + 2
    return b"".join(pieces) if pieces else body


class BadChunk(Exception):
    """Bytes that are no chunk."""


class ChunkScanner:
    """The framing of one body in chunks. The pieces of the body come in their order.

    done   whether the body is complete
    """

    def __init__(self) -> None:
        self.done = False
        self._state = _AT_SIZE
        self._left = 0  # bytes of this chunk's data that are still to come
        self._line = b""  # start of an incomplete line
        self._trailers = 0

    def feed(self, data: bytes, begin: int) -> int:
        """Take the bytes of `data` from `begin` on. Return the end of the body in it, or its size.

        Raises BadChunk.
        """
        at, size = begin, len(data)
        while at < size and not self.done:
            if self._state == _IN_DATA:
                step = min(self._left, size - at)
                self._left -= step
                at += step
                if not self._left:
                    self._state = _AFTER_DATA
                continue
            end = data.find(b"\n", at) + 1
            piece = data[at : end or size]
            at += len(piece)
            self._line += piece
            if len(self._line) > _LONGEST_LINE:
                raise BadChunk("a line of a body in chunks is too long")
            if end:
                line, self._line = self._line, b""
                self._take(line)
        return at

    def _take(self, line: bytes) -> None:
        """Process a complete line between the data of two chunks."""
        if self._state == _AT_SIZE:
            match = _SIZE.fullmatch(line)
            if match is None:
                raise BadChunk("the size of a chunk is no hexadecimal number")
            self._left = int(match[1], 16)
            self._state = _IN_DATA if self._left else _IN_TRAILERS
        elif self._state == _AFTER_DATA:
            if line != b"\r\n":
                raise BadChunk("a chunk is longer than its size")
            self._state = _AT_SIZE
        else:
            self._trailers += len(line)
            if not line.endswith(b"\r\n") or self._trailers > _MOST_TRAILERS:
                raise BadChunk("the fields after a body in chunks are malformed")
            self.done = line == b"\r\n"
