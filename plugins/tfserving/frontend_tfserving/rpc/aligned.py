"""Examples whose features have one order and one kind each: numpy reads a feature of all of them at once.

Texts and whole numbers have different lengths, so that each example has its own places. A sender encodes the
features of a batch in one order as a rule, though protobuf does not promise it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np

from frontend_tfserving.rpc import varints

FEWEST = 64
"""Of examples: fewer are read faster one by one."""

_KINDS = {1: "bytes_list", 2: "float_list", 3: "int64_list"}
_LENGTH = 2  # the wire type of texts, messages and packed numbers
_MOST_BITS = 28  # of a length
_MOST_TEXTS = 8  # of a list: more are read faster one by one
_PADDING = bytes(16)  # behind the last byte: a length may be looked for there

Column = tuple[str, Any]
"""Kind of the list of a feature, and its values: FP32, INT64 or bytes[examples, values]."""


def columns_of(
    examples: Sequence[bytes], known: Collection[str] | None = None
) -> dict[str, Column] | None:
    """Return the values of each feature, or None for examples that are not aligned. Thread-safe.

    known   names of features, None for any: examples with another one are not read
    """
    try:
        return dict(_Table(examples).columns(known))
    except _Differs:
        return None


class _Differs(Exception):
    """The examples are not aligned, or not encoded as usual."""


class _Table:
    """Examples as one array of bytes. Places are int64[examples], one in each of them."""

    def __init__(self, examples: Sequence[bytes]):
        self._bytes = b"".join([*examples, _PADDING])
        self._data = np.frombuffer(self._bytes, np.uint8)
        self._ends = np.cumsum([len(each) for each in examples], dtype=np.int64)
        self._starts = np.concatenate([[0], self._ends[:-1]])

    def columns(self, known: Collection[str] | None) -> Iterator[tuple[str, Column]]:
        """Yield each feature with its column. Raises _Differs."""
        at, names = self._only(self._starts, self._ends, 1)[0], set()
        while self._more(at, self._ends):
            entry, end = self._parts(at, self._ends, 1)
            key, key_end = self._parts(entry, end, 1)
            name = self._common(key, key_end)
            if name in names or not (known is None or name in known):
                raise _Differs
            names.add(name)
            feature, _ = self._only(key_end, end, 2)
            if (kind := int(self._data[feature[0]]) >> 3) not in _KINDS:
                raise _Differs
            yield name, (_KINDS[kind], self._values(kind, *self._only(feature, end, kind)))
            at = end

    def _values(self, kind: int, at: Any, end: Any) -> Any:
        """Return the values of the lists at these places."""
        if _KINDS[kind] == "bytes_list":
            return self._texts(at, end)
        rows = self._slices(*self._only(at, end, 1))
        sent = np.frombuffer(b"".join(rows), np.uint8)
        sizes = np.fromiter(map(len, rows), np.int64, len(rows))
        if not sizes.all():
            raise _Differs
        if _KINDS[kind] == "float_list":
            if (sizes != sizes[0]).any() or sizes[0] % 4:
                raise _Differs
            return sent.view(np.float32).reshape(len(rows), -1)
        last = sent < 0x80  # of the bytes of a number
        ends = np.cumsum(sizes)
        counts = np.add.reduceat(last, ends - sizes, dtype=np.int64)
        if (counts != counts[0]).any() or not last[ends - 1].all():
            raise _Differs
        try:
            return varints.decode(sent.tobytes(), np.dtype(np.int64)).reshape(len(rows), -1)
        except ValueError:
            raise _Differs from None

    def _texts(self, at: Any, end: Any) -> Any:
        columns: list[list[bytes]] = []
        while self._more(at, end):
            if len(columns) == _MOST_TEXTS:
                raise _Differs
            text, at = self._parts(at, end, 1)
            columns.append(self._slices(text, at))
        if not columns:
            raise _Differs
        found = np.empty((len(columns[0]), len(columns)), object)
        for place, column in enumerate(columns):
            found[:, place] = column
        return found

    def _slices(self, at: Any, end: Any) -> list[bytes]:
        return [self._bytes[a:b] for a, b in zip(at.tolist(), end.tolist(), strict=True)]

    def _common(self, at: Any, end: Any) -> str:
        """Return the text that all examples have at these places."""
        found = self._slices(at, end)
        if found.count(found[0]) < len(found):
            raise _Differs
        try:
            return found[0].decode()
        except UnicodeDecodeError:
            raise _Differs from None

    @staticmethod
    def _more(at: Any, end: Any) -> bool:
        """Return whether there is more before the ends: in all examples, or in none."""
        more = at < end
        if not (found := bool(more.all())) and more.any():
            raise _Differs
        return found

    def _only(self, at: Any, end: Any, number: int) -> tuple[Any, Any]:
        """Return where the content of a field is, which is all that there is before the end."""
        begin, stop = self._parts(at, end, number)
        if (stop != end).any():
            raise _Differs
        return begin, stop

    def _parts(self, at: Any, end: Any, number: int) -> tuple[Any, Any]:
        """Return where the contents of the fields at these places begin and end."""
        if (at >= end).any() or (self._data[at] != number << 3 | _LENGTH).any():
            raise _Differs
        at = at + 1
        byte = self._data[at].astype(np.int64)
        size, more, bits = byte & 0x7F, byte >= 0x80, 7
        while more.any():
            if bits >= _MOST_BITS:
                raise _Differs
            at = at + more
            byte = np.where(more, self._data[at], 0).astype(np.int64)
            size |= (byte & 0x7F) << bits
            more, bits = byte >= 0x80, bits + 7
        stop = at + 1 + size
        if (stop > end).any():
            raise _Differs
        return at + 1, stop
