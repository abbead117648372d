"""Examples that differ in their floats only: the columns of a table of bytes.

Senders encode the examples of a batch alike. Then each feature is at the same bytes in all of them, and
numpy reads it from all at once.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

_LENGTH = 2  # the wire type of texts, messages and packed numbers
_MOST_BITS = 35  # of a length
_MOST_FEATURES = 500  # of any name, for each example: more are read faster one by one


def columns_of(
    examples: Sequence[bytes], known: Collection[str] | None = None
) -> dict[str, Any] | None:
    """Return the values of each feature as FP32[examples, values]. Thread-safe.

    known   names of features; None for any, of which there are at most _MOST_FEATURES for each example
    Returns None for encoded examples that have anything but floats of these features, or differ in anything
    but their floats.
    """
    if len(set(map(len, examples))) > 1:
        return None
    most = _MOST_FEATURES * len(examples) if known is None else len(known)
    if (places := _places(examples[0], most, known)) is None:
        return None
    table = np.frombuffer(b"".join(examples), np.uint8).reshape(len(examples), -1)
    differs = (table != table[0]).any(axis=0)
    for place in places.values():
        differs[place] = False
    if differs.any():
        return None
    return {
        name: np.ascontiguousarray(table[:, place]).view(np.float32)
        for name, place in places.items()
    }


def _places(example: bytes, most: int, known: Collection[str] | None) -> dict[str, slice] | None:
    """Return where the packed floats of each feature are; None for an example that has anything else.

    most   number of features
    """
    found: dict[str, slice] = {}
    try:
        features = _only(example, slice(0, len(example)), 1)
        at = features.start
        while at < features.stop:
            entry = _part(example, at, features.stop, 1)
            key = _part(example, entry.start, entry.stop, 1)
            feature = _only(example, slice(key.stop, entry.stop), 2)
            floats = _only(example, _only(example, feature, 2), 1)
            name = example[key].decode()
            if name in found or len(found) == most or not (known is None or name in known):
                return None
            if (floats.stop - floats.start) % 4:
                return None
            found[name] = floats
            at = entry.stop
    except (IndexError, ValueError):
        return None
    return found or None


def _only(data: bytes, inside: slice, number: int) -> slice:
    """Return where the content of a field is, which is all that there is inside of another one."""
    found = _part(data, inside.start, inside.stop, number)
    if found.stop != inside.stop:
        raise ValueError("there is more than one field")
    return found


def _part(data: bytes, at: int, end: int, number: int) -> slice:
    """Return where the content of the field at a place is. Raises ValueError for another field.

    number   of the field, below 16
    """
    if at >= end or data[at] != number << 3 | _LENGTH:
        raise ValueError("another field")
    size = bits = 0
    while True:
        at += 1
        size |= (data[at] & 0x7F) << bits
        if data[at] < 0x80:
            break
        if (bits := bits + 7) >= _MOST_BITS:
            raise ValueError("a length is too long")
    if at + 1 + size > end:
        raise ValueError("a field ends behind that which has it")
    return slice(at + 1, at + 1 + size)
