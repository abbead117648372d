"""Counts the entries of the index of an MP4 file, without making it: a few bytes may ask for millions."""

from __future__ import annotations

import struct
from collections.abc import Iterator

# Boxes with a number of entries → where it lies behind the name.
_COUNTS = {b"stsz": 12, b"stz2": 12, b"trun": 8}
_PAYLOAD = (b"mdat", b"free", b"skip", b"wide")


def entries(data: bytes) -> int:
    """Return how many entries the tables of a file claim together.

    Tables are looked for everywhere but in the media data, since readers accept them at many places.
    """
    total = 0
    for part in _outside_payload(data):
        for name, offset in _COUNTS.items():
            at = part.find(name)
            while at >= 0:
                field = part[at + offset : at + offset + 4]
                total += struct.unpack(">I", field)[0] if len(field) == 4 else 0
                at = part.find(name, at + 4)
    return total


def _outside_payload(data: bytes) -> Iterator[bytes]:
    """Yield the boxes of a file, without those of media data; from a damaged one on, all that follows."""
    at = 0
    while at + 8 <= len(data):
        size, name = struct.unpack_from(">I4s", data, at)
        if size == 1 and at + 16 <= len(data):
            (size,) = struct.unpack_from(">Q", data, at + 8)
        elif size == 0:
            size = len(data) - at
        if size < 8:
            yield data[at:]
            return
        if name not in _PAYLOAD:
            yield data[at : at + size]
        at += size
