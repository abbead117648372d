"""Table: read a FlatBuffer with a check of every place. Damaged files raise Damaged, never an IndexError.

A table begins with the distance back to its list of fields. That list has, for each field, its distance from
the beginning of the table, 0 if the field is absent. Texts, vectors and tables are a distance ahead.
"""

from __future__ import annotations

import struct

import numpy as np

from backend_fil.catboost.content import Damaged

_MOST_TABLES = 1 << 20  # in a vector; a model has one for each feature


class Table:
    """One table. Fields have the numbers of their order in the schema.

    content   the whole buffer
    place     of the table's first byte in it
    """

    def __init__(self, content: bytes, place: int):
        self._content = content
        self._place = place
        self._fields = place - self._number("<i", place)
        self._size = self._number("<H", self._fields)

    @classmethod
    def root(cls, content: bytes) -> Table:
        if len(content) < 8:
            raise Damaged("its last bytes are missing")
        return cls(content, int.from_bytes(content[:4], "little"))

    def number(self, field: int, form: str, default: float) -> float:
        """Return a number. `form` is that of struct."""
        place = self._where(field)
        return default if place is None else self._number(form, place)

    def whole(self, field: int, default: int) -> int:
        return int(self.number(field, "<i", default))

    def text(self, field: int) -> str:
        place = self._where(field)
        return "" if place is None else self._bytes(self._target(place)).decode("utf-8", "replace")

    def array(self, field: int, form: str) -> np.ndarray:
        """Return a vector of numbers or structs, as a view. `form` is a little-endian dtype of numpy."""
        place = self._where(field)
        if place is None:
            return np.empty(0, form)
        dtype = np.dtype(form)
        start = self._target(place)
        count = int(self._number("<I", start))
        self._check(start + 4, count * dtype.itemsize)
        return np.frombuffer(self._content, dtype, count, start + 4)

    def table(self, field: int) -> Table:
        place = self._where(field)
        if place is None:
            raise Damaged(f"field {field} of a table is missing")
        return Table(self._content, self._target(place))

    def tables(self, field: int) -> list[Table]:
        place = self._where(field)
        if place is None:
            return []
        start = self._target(place)
        count = int(self._number("<I", start))
        self._check(start + 4, count * 4)
        if count > _MOST_TABLES:
            raise Damaged(f"a list of {count} tables")
        places = range(start + 4, start + 4 + 4 * count, 4)
        return [Table(self._content, self._target(each)) for each in places]

    def _where(self, field: int) -> int | None:
        entry = 4 + 2 * field
        if entry + 2 > self._size:
            return None
        offset = int(self._number("<H", self._fields + entry))
        return self._place + offset if offset else None

    def _target(self, place: int) -> int:
        return place + int(self._number("<I", place))

    def _bytes(self, start: int) -> bytes:
        count = int(self._number("<I", start))
        self._check(start + 4, count)
        return self._content[start + 4 : start + 4 + count]

    def _number(self, form: str, place: int) -> int:
        self._check(place, struct.calcsize(form))
        return struct.unpack_from(form, self._content, place)[0]  # type: ignore[no-any-return]

    def _check(self, place: int, size: int) -> None:
        if place < 0 or place + size > len(self._content):
            raise Damaged(f"it has {len(self._content)} bytes and points to byte {place + size}")
