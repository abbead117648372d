"""Remove category names from files of XGBoost, because treelite cannot read them.

files ─► [without_names] ─► treelite.  XGBoost stores the category names of a pandas frame. Trees and requests
use their numbers: the index of each name in the frame's categories (`frame["colour"].cat.codes`).
"""

from __future__ import annotations

import json
import re
import struct
from itertools import pairwise
from typing import Any

import numpy as np

_EMPTY_JSON = b'{"enc":[],"feature_segments":[],"sorted_idx":[]}'
_IN_JSON = re.compile(rb'"cats"\s*:\s*(?=\{\s*"enc")')


def _key(name: bytes) -> bytes:
    return b"L" + struct.pack(">q", len(name)) + name


_IN_UBJSON = _key(b"cats") + b"{" + _key(b"enc") + b"["
_NONE = b"[#L" + bytes(8)
_EMPTY_UBJSON = b"{%b%b%b%b%b%b}" % (
    *(_key(b"enc"), _NONE),
    *(_key(b"feature_segments"), _NONE),
    *(_key(b"sorted_idx"), _NONE),
)
_NUMBERS = {
    b"i": ">i1",
    b"U": ">u1",
    b"I": ">i2",
    b"l": ">i4",
    b"L": ">i8",
    b"d": ">f4",
    b"D": ">f8",
}

Names = dict[int, list[str]]
"""Feature number → names of its categories, in the order of their numbers."""


def without_names(content: bytes, kind: str) -> tuple[bytes, Names] | None:
    """Return a model file of XGBoost without category names, and the names. None if it has no names.

    kind   "xgboost_json" or "xgboost_ubj"
    Raises ValueError for an incomplete file.
    """
    if kind == "xgboost_json":
        if (found := _IN_JSON.search(content)) is None:
            return None
        # Only this part of the file is parsed, because the file may be large.
        start = found.end()
        text = content[start:].decode()
        encoders, length = json.JSONDecoder().raw_decode(text)
        end, empty = start + len(text[:length].encode()), _EMPTY_JSON
    else:
        if (place := content.find(_IN_UBJSON)) < 0:
            return None
        start = place + len(_key(b"cats"))
        reader = _Ubjson(content, start)
        encoders = reader.value()
        end, empty = reader.place, _EMPTY_UBJSON
    names = {i: _names(each) for i, each in enumerate(encoders["enc"])}
    names = {i: found for i, found in names.items() if found}
    return (content[:start] + empty + content[end:], names) if names else None


def shown(names: Names, most: int = 200) -> str:
    """Return the numbers of all categories for the log: "feature 1: 0 blue, 1 green; …".

    most   number of characters after which the text is cut
    """
    text = "; ".join(
        f"feature {i}: " + ", ".join(f"{code} {name}" for code, name in enumerate(found))
        for i, found in names.items()
    )
    return text if len(text) <= most else f"{text[:most]} …"


def _names(encoder: dict[str, Any]) -> list[str]:
    """Return the category names of one feature.

    Its `values` are the categories. With `offsets`, they are the bytes of all names; `offsets` are the
    beginnings of the names, and the end of the last name.
    """
    values = encoder["values"]
    if "offsets" not in encoder:
        return [str(each) for each in values]
    content = bytes(int(each) & 255 for each in values)
    places = [int(each) for each in encoder["offsets"]]
    return [content[a:b].decode(errors="replace") for a, b in pairwise(places)]


class _Ubjson:
    """Read the part of UBJSON that XGBoost writes. Raises ValueError for other content."""

    def __init__(self, content: bytes, place: int):
        self.content = content
        self.place = place

    def value(self) -> Any:
        marker = self._take(1)
        if marker == b"{":
            return self._object()
        if marker == b"[":
            return self._array()
        if marker == b"S":
            return self._take(int(self.value())).decode()
        return self._numbers(marker, 1)[0]

    def _object(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while self.content[self.place : self.place + 1] != b"}":
            key = self._take(int(self.value())).decode()
            found[key] = self.value()
        self.place += 1
        return found

    def _array(self) -> list[Any]:
        marker = self._take(1)
        if marker == b"$":
            kind = self._take(1)
            marker = self._take(1)
        else:
            kind = b""
        if marker != b"#":
            raise ValueError("an array of UBJSON that does not say its length")
        count = int(self.value())
        return self._numbers(kind, count) if kind else [self.value() for _ in range(count)]

    def _numbers(self, kind: bytes, count: int) -> list[Any]:
        if kind not in _NUMBERS:
            raise ValueError(f"{kind!r} is no number of UBJSON")
        form = np.dtype(_NUMBERS[kind])
        return list(np.frombuffer(self._take(count * form.itemsize), form).tolist())

    def _take(self, size: int) -> bytes:
        if size < 0 or self.place + size > len(self.content):
            raise ValueError("the file ends too early")
        self.place += size
        return self.content[self.place - size : self.place]
