"""compiled.py in Python, for child processes with another interpreter than the server's.

Names, arguments, results and bytes are the same; tests compare both with random messages. It needs Python 3.9
or later, and only numpy.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

_HEADER = struct.Struct("=IBxHQ")  # bytes that follow, kind, how many numbers, number
_MOST_RELEASED = 0xFFFF
_AT_ONCE = 1 << 16  # bytes


def message(kind: int, number: int, released: Sequence[int], parts: list[Any]) -> bytes:
    """Return the bytes of a message: header, released numbers, content.

    Raises ValueError if released numbers and content have 4 GiB or more, and for 65536 released numbers or
    more; OverflowError for a number that does not fit its field.
    """
    content = [_raw(part) for part in parts]
    count = len(released)
    size = 8 * count + sum(map(_length, content))
    if count > _MOST_RELEASED or size > 0xFFFFFFFF:
        raise ValueError(f"a message of {size} bytes with {count} numbers is too large")
    try:
        header = _HEADER.pack(size, kind, count, number)
        if count:
            header += struct.pack(f"={count}Q", *released)
    except struct.error as error:
        raise OverflowError(str(error)) from None
    return b"".join((header, *content))


class Frame:
    """One message that was received."""

    __slots__ = ("content", "kind", "number", "released")

    def __init__(self, kind: int, number: int, released: tuple[int, ...], content: bytes):
        self.kind = kind
        self.number = number
        self.released = released
        self.content = content


class Reader:
    """Splits what arrives on a socket into frames. One thread at a time.

    most   largest size of a message, in bytes
    """

    def __init__(self, sock: socket.socket, most: int):
        self._socket = sock
        self._most = most
        self._buffer = bytearray()
        self._start = 0  # of the bytes that are in no frame yet

    def receive(self) -> bool:
        """Receive once; return False if the other side has closed. Raises OSError."""
        received = self._socket.recv(_AT_ONCE)
        if self._start:
            del self._buffer[: self._start]
            self._start = 0
        self._buffer += received
        return bool(received)

    def next(self) -> Frame | None:
        """Return the next complete message, or None. Raises ValueError for an invalid header."""
        start = self._start + _HEADER.size
        if len(self._buffer) < start:
            return None
        size, kind, count, number = _HEADER.unpack_from(self._buffer, self._start)
        if size > self._most or 8 * count > size:
            raise ValueError(f"message of {size} bytes with {count} numbers")
        end = start + size
        if len(self._buffer) < end:
            return None
        released = struct.unpack_from(f"={count}Q", self._buffer, start) if count else ()
        self._start = end
        with memoryview(self._buffer) as view:
            return Frame(kind, number, released, bytes(view[start + 8 * count : end]))


def joined(parts: list[Any], alignment: int) -> bytes:
    """Copy all parts into one bytes object; zeros fill each part to a multiple of `alignment`."""
    found: list[Any] = []
    for part in parts:
        raw = _raw(part)
        found.append(raw)
        found.append(bytes(-_length(raw) % alignment))
    return b"".join(found)


def gather(parts: list[Any], out: Any, offset: int = 0, alignment: int = 1) -> int:
    """Copy contiguous parts one after another into `out`, from byte `offset` on.

    Each part begins at a multiple of `alignment`, counted from there. Return the bytes up to the end of the
    last part. Raises ValueError if they do not fit. numpy copies large parts without the GIL.
    """
    if alignment < 1:
        raise ValueError(f"gather: alignment {alignment}")
    target = np.frombuffer(out, np.uint8)
    end = 0
    places = []
    for part in parts:
        start = end + -end % alignment
        end = start + memoryview(part).nbytes
        if end > start:  # numpy makes no array of nothing
            places.append((start + offset, np.frombuffer(part, np.uint8)))
    if offset < 0 or offset > target.size or end > target.size - offset:
        raise ValueError(
            f"gather: {end} bytes at offset {offset} do not fit into {target.size} bytes"
        )
    for start, source in places:
        target[start : start + source.size] = source
    return end


def _raw(part: Any) -> Any:
    """Return the bytes of a part in row-major order, or a contiguous buffer of them."""
    if type(part) is not np.ndarray:
        if type(part) is not bytes and not memoryview(part).c_contiguous:
            raise BufferError("a buffer that is not contiguous")
        return part
    if part.dtype.hasobject:
        raise ValueError("an array of objects has no bytes")
    return part if part.flags.c_contiguous else part.tobytes()


def _length(part: Any) -> int:
    return len(part) if type(part) is bytes else memoryview(part).nbytes
