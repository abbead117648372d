"""Fields of a protobuf message, read one by one from a file that is mapped into memory.

The content of large fields, such as weights, is not touched. A damaged message raises Damaged.
"""

from __future__ import annotations

from collections.abc import Iterator

Buffer = memoryview
Field = tuple[int, "int | Buffer"]


class Damaged(ValueError):
    """The bytes are no protobuf message."""


def fields(message: Buffer) -> Iterator[Field]:
    """Yield (number, value) of each field: a number for varints and fixed sizes, else the bytes."""
    at, end = 0, len(message)
    while at < end:
        key, at = _varint(message, at, end)
        number, kind = key >> 3, key & 7
        if number == 0:
            raise Damaged("a field has the number 0")
        if kind == 0:
            value, at = _varint(message, at, end)
            yield number, value
        elif kind == 2:
            size, at = _varint(message, at, end)
            if size > end - at:
                raise Damaged(f"{size - (end - at)} bytes are missing")
            yield number, message[at : at + size]
            at += size
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            if size > end - at:
                raise Damaged("the last bytes are missing")
            yield number, int.from_bytes(message[at : at + size], "little")
            at += size
        else:
            raise Damaged(f"a field has the unknown kind {kind}")


def text(value: int | Buffer) -> str:
    """Return the text of a field. Raises Damaged if it is none."""
    if isinstance(value, int):
        raise Damaged("a number is in the place of a text")
    if len(value) > 1 << 20:
        raise Damaged("a name has more than a million bytes")
    return bytes(value).decode("utf-8", "replace")


def inner(value: int | Buffer) -> Buffer:
    """Return the message in a field. Raises Damaged if it is none."""
    if isinstance(value, int):
        raise Damaged("a number is in the place of a message")
    return value


def whole(value: int | Buffer) -> int:
    """Return the signed number in a field. Raises Damaged if it is none."""
    if not isinstance(value, int):
        raise Damaged("bytes are in the place of a number")
    return value - (1 << 64) if value >= 1 << 63 else value


def _varint(message: Buffer, at: int, end: int) -> tuple[int, int]:
    found = shift = 0
    while True:
        if at >= end:
            raise Damaged("the last bytes are missing")
        byte = message[at]
        at += 1
        found |= (byte & 127) << shift
        if byte < 128:
            return found & (1 << 64) - 1, at
        shift += 7
        if shift > 63:
            raise Damaged("a number has more than 64 bits")
