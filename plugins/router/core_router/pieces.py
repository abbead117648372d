"""Pieces: bytes that come piece by piece, and cost about their number however small the pieces are."""

from __future__ import annotations

_OWN_FROM = 16 * 1024  # bytes from which on a piece stays the object that it is


class Pieces:
    """Collects bytes until they are joined.

    A small piece is copied behind the one before it, in place: as an object of its own, one byte would take
    fifty.

    size   bytes that have been added
    """

    __slots__ = ("_parts", "size")

    def __init__(self) -> None:
        self._parts: list[bytes | bytearray] = []
        self.size = 0

    def add(self, data: bytes) -> None:
        """Append bytes."""
        self.size += len(data)
        parts = self._parts
        if not parts or len(data) >= _OWN_FROM:
            parts.append(data)
            return
        last = parts[-1]
        if isinstance(last, bytearray):
            last += data
        else:
            parts.append(bytearray(data))

    def join(self) -> bytes:
        """Return all bytes, and forget them."""
        parts, self._parts = self._parts, []
        self.size = 0
        return bytes(parts[0]) if len(parts) == 1 else b"".join(parts)
