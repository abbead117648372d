# cython: boundscheck=False, wraparound=False
"""ChunkScanner: finds the end of a body with chunks, whose bytes pass as they are.

without_chunks: what such a body says, once it is complete.
"""

from __future__ import annotations

import re

MOST_CHUNKS = 65_536
"""Nonempty chunks of a request. Servers of core take no more, either."""

_SIZE = re.compile(rb"([0-9a-fA-F]{1,15})[ \t]*(?:;[^\x00-\x08\x0a-\x1f\x7f]*)?\r\n")
_LONGEST_LINE = 4096
_MOST_TRAILERS = 16 * 1024
_MOST_DIGITS = 15

_AT_SIZE, _IN_DATA, _AFTER_DATA, _IN_TRAILERS = range(4)
_CR, _LF, _TAB, _SPACE, _SEMICOLON, _DELETE = b"\r\n\t ;\x7f"


def without_chunks(body: bytes) -> bytes:
    """Return the data of a complete body in chunks; any other body as it is."""
    pieces, at = [], 0
    while begin := _data_at(body, at):
        length = _size_at(body, at)
        if not length:
            break
        at = min(begin + length, len(body))
        pieces.append(body[begin:at])
        at += 2
    return b"".join(pieces) if pieces else body


def _data_at(body: bytes, at: int) -> int:
    """Return where the data of the chunk at a position begins; 0 if its first line is incomplete or none."""
    end, last = at, min(len(body), at + _LONGEST_LINE) - 1
    while end < last and _digit(body[end]) >= 0:
        end += 1
    if not 0 < end - at <= _MOST_DIGITS:
        return 0
    while end < last and (body[end] == _SPACE or body[end] == _TAB):
        end += 1
    if end < last and body[end] == _SEMICOLON:
        while end < last and (body[end] == _TAB or (body[end] >= _SPACE and body[end] != _DELETE)):
            end += 1
    return end + 2 if end < last and body[end] == _CR and body[end + 1] == _LF else 0


def _size_at(body: bytes, at: int) -> int:
    """Return the number whose hexadecimal digits begin at a position."""
    found, digit = 0, _digit(body[at])
    while digit >= 0:
        found = found * 16 + digit
        at += 1
        digit = _digit(body[at])
    return found


def _digit(byte: int) -> int:
    """Return the value of a hexadecimal digit; -1 for other bytes."""
    if 48 <= byte <= 57:
        return byte - 48
    if 97 <= byte <= 102:
        return byte - 87
    return byte - 55 if 65 <= byte <= 70 else -1


class BadChunk(Exception):
    """Bytes that are no chunk."""


class ChunkScanner:
    """The framing of one body in chunks. The pieces of the body come in their order.

    done   whether the body is complete
    """

    def __init__(self, most: int = 0):
        """Begin a body. most: its nonempty chunks at most; 0 for any number."""
        self.done = False
        self._most = most
        self._count = 0
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
            if not self._line:
                # Lines that are here as a whole: nearly all, and a client may send many.
                if self._state == _AT_SIZE:
                    after = _data_at(data, at)
                    if after:
                        self._begin(_size_at(data, at))
                        at = after
                        continue
                elif (
                    self._state == _AFTER_DATA
                    and at + 1 < size
                    and data[at] == _CR
                    and data[at + 1] == _LF
                ):
                    self._state = _AT_SIZE
                    at += 2
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

    def _begin(self, size: int) -> None:
        """Begin the chunk of a size."""
        self._left = size
        self._state = _IN_DATA if size else _IN_TRAILERS
        self._count += 1
        if size and self._count > self._most > 0:
            raise BadChunk(
                f"the body has more than {self._most} chunks that are not empty: send larger ones"
            )

    def _take(self, line: bytes) -> None:
        """Process a complete line between the data of two chunks."""
        if self._state == _AT_SIZE:
            match = _SIZE.fullmatch(line)
            if match is None:
                raise BadChunk("the size of a chunk is no hexadecimal number")
            self._begin(int(match[1], 16))
        elif self._state == _AFTER_DATA:
            if line != b"\r\n":
                raise BadChunk("a chunk is longer than its size")
            self._state = _AT_SIZE
        else:
            self._trailers += len(line)
            if not line.endswith(b"\r\n") or self._trailers > _MOST_TRAILERS:
                raise BadChunk("the fields after a body in chunks are malformed")
            self.done = line == b"\r\n"
