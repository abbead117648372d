"""Bounds the index that FFmpeg makes when it opens an MP4 file: a few bytes may ask for millions of entries.

FFmpeg's mov.c makes the index of these tables, and has no bound for it:
- stsz, stz2, trun: an entry for each sample, also if all samples have one size and the table is 20 bytes
- stts of duration 1: entries for the samples of each chunk instead, as stsc counts them
- elst: the entries of a track once for each edit
- cmov: a compressed index
- without moov, a box such as free is read as one
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np

# Tables with a number of samples → where it lies behind the name.
_SAMPLES = {b"stsz": 12, b"stz2": 12, b"trun": 8}
_COUNT = 8  # where the number of entries lies in the other tables
_LEAST_OF_CHUNK = 160  # samples that share an entry, at least


def claims_more(data: bytes, most: int) -> bool:
    """Return whether the index of a file may have more than `most` entries.

    Tables are looked for everywhere but in the media data, since readers accept them at many places. It is
    true, too, for a file with more boxes or tables than that, and for one whose index is compressed.
    """
    parts = _outside_payload(data, most)
    if parts is None or any(b"cmov" in part for part in parts):
        return True
    tables = _Tables(parts, most)
    samples = sum(tables.numbers(name, at) for name, at in _SAMPLES.items())
    if 1 in (tables.number(part, at + 16) for part, at in tables.places(b"stts")):
        chunks = tables.numbers(b"stco", _COUNT) + tables.numbers(b"co64", _COUNT)
        samples += chunks * -(-tables.most_of_chunk() // _LEAST_OF_CHUNK)
    edits = max(
        (tables.number(part, at + _COUNT) for part, at in tables.places(b"elst")), default=0
    )
    return tables.seen > most or samples * max(1, edits) > most


class _Tables:
    """The tables in parts of a file. `seen` counts them; after `most`, no more are read."""

    def __init__(self, parts: list[bytes], most: int):
        self._parts = parts
        self._most = most
        self.seen = 0

    def places(self, name: bytes) -> Iterator[tuple[bytes, int]]:
        """Yield each part and place where a name lies."""
        for part in self._parts:
            at = part.find(name)
            while at >= 0 and self.seen <= self._most:
                self.seen += 1
                yield part, at
                at = part.find(name, at + len(name))

    def number(self, part: bytes, at: int) -> int:
        """Return the number at a place; 0 behind the end."""
        found: int = struct.unpack_from(">I", part, at)[0] if at + 4 <= len(part) else 0
        return found

    def numbers(self, name: bytes, offset: int) -> int:
        """Return the sum of the numbers that lie so far behind a name."""
        return sum(self.number(part, at + offset) for part, at in self.places(name))

    def most_of_chunk(self) -> int:
        """Return the largest number of samples that an entry of stsc gives a chunk. Entries count as seen."""
        most = 0
        for part, at in self.places(b"stsc"):
            begin = at + _COUNT + 4
            there = max(0, len(part) - begin) // 12
            count = min(self.number(part, at + _COUNT), there, self._most)
            self.seen += count
            rows = np.frombuffer(part, ">u4", 3 * count, begin)
            most = max(most, int(rows[1::3].max(initial=0)))
        return most


def _outside_payload(data: bytes, most: int) -> list[bytes] | None:
    """Return what lies between the boxes of media data; from a damaged one on, all that follows.

    None for a file of more than `most` boxes.
    """
    parts = []
    at = begin = boxes = 0
    while at + 8 <= len(data):
        size, name = struct.unpack_from(">I4s", data, at)
        if size == 1 and at + 16 <= len(data):
            (size,) = struct.unpack_from(">Q", data, at + 8)
        elif size == 0:
            size = len(data) - at
        if size < 8:
            break
        if name == b"mdat":
            parts.append(data[begin:at])
            begin = at + size
        at += size
        boxes += 1
        if boxes > most:
            return None
    return [*parts, data[begin:]]
