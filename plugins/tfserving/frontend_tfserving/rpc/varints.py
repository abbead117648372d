"""Arrays of integers ↔ the bytes of a packed field, in which each integer is a varint.

A varint has seven bits in each byte, the lowest first; all bytes but the last one have the highest bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

_MOST_BYTES = 10  # of a varint
_BLOCK = 1 << 16  # bytes or integers at a time: temporary arrays stay small


def decode(packed: bytes, dtype: np.dtype[Any]) -> Any:
    """Return the integers as an array of a datatype of integers or of bool. Thread-safe.

    The lowest bits count, as in protobuf; for bool, a value other than 0 is true. Raises ValueError for bytes
    that are no varints.
    """
    return np.concatenate([np.empty(0, dtype), *_decoded(np.frombuffer(packed, np.uint8), dtype)])


def _decoded(data: Any, dtype: np.dtype[Any]) -> Iterator[Any]:
    first = 0
    while first < len(data):
        block = data[first : first + _BLOCK]
        ends = np.flatnonzero(block < 0x80) + 1
        if not len(ends):
            raise ValueError("a varint has no end")
        yield _values(block[: ends[-1]], ends).astype(dtype)
        first += int(ends[-1])


def _values(block: Any, ends: Any) -> Any:
    """Return the integers of a block as 64 bits. `ends` has the end of each one."""
    if len(ends) == len(block):
        return block
    lengths = np.diff(ends, prepend=0)
    starts = ends - lengths
    longest = int(lengths.max())
    if longest > _MOST_BYTES:
        raise ValueError(f"a varint has {longest} bytes")
    found = np.zeros(len(ends), np.uint64)
    for at in range(longest):
        has = lengths > at
        bits = (block[starts[has] + at] & 0x7F).astype(np.uint64)
        found[has] |= bits << np.uint64(7 * at)
    return found


def encode(values: Any) -> bytes:
    """Return the packed field of an array of integers. Negative ones take ten bytes. Thread-safe."""
    flat = values.ravel()
    return b"".join(_encoded(flat[at : at + _BLOCK]) for at in range(0, len(flat), _BLOCK))


def _encoded(values: Any) -> bytes:
    wide = values if values.dtype == np.uint64 else values.astype(np.int64).view(np.uint64)
    lengths = np.ones(len(wide), np.int64)
    for at in range(1, _MOST_BYTES):
        if not (more := wide >> np.uint64(7 * at) != 0).any():
            break
        lengths += more
    ends = np.cumsum(lengths)
    starts = ends - lengths
    found = np.empty(int(ends[-1]), np.uint8)
    for at in range(int(lengths.max())):
        has = lengths > at
        bits = (wide[has] >> np.uint64(7 * at)).astype(np.uint8) & 0x7F
        found[starts[has] + at] = bits | ((lengths[has] > at + 1).astype(np.uint8) << 7)
    return found.tobytes()
