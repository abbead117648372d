"""Layout: where the tensors of a message are in its region, as JSON.

A layout is a list with one item for each request. An item with tensors is a list of
[name, number of the datatype, shape, bytes]. Tensors follow one another, each aligned. Both sides compute the
offsets by the same rule, so items of equal requests are equal bytes and are parsed once (items.py).
For a tensor that stays on a GPU the region contains a LOAN, and the layout a fifth word: LENT or
LENT_AND_COPIED.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from backend_python.api.datatypes import BYTES, ITEM_SIZE
from backend_python.arena import aligned
from backend_python.items import Item
from backend_python.protocol import ProtocolError

# Only the loan; the loan and, after LOAN_BYTES, a copy in host memory.
LENT, LENT_AND_COPIED = 1, 2
LOAN_BYTES = 128  # of a LOAN, with padding

_ANY = 1 << 63  # bytes of a region, for an item whose region is not known yet
_REMEMBERED = 256  # layouts
_REMEMBERED_BELOW = 1 << 13  # bytes of one layout


class Place(NamedTuple):
    """One tensor in a region."""

    name: str
    number: int  # of the datatype
    shape: tuple[int, ...]
    start: int
    size: int  # bytes
    lent: int = 0  # LENT or LENT_AND_COPIED of one on a GPU


class Answer(NamedTuple):
    """One response in a region."""

    places: list[Place]
    error: tuple[int, str] | None  # code and text
    parameters: str  # JSON, or ""


def places(entries: Sequence[Sequence[Any]], start: int, region: int) -> tuple[list[Place], int]:
    """Return the tensors of one item, and the offset at which the next item begins.

    Raises ProtocolError if a tensor exceeds the region of `region` bytes, or its bytes do not fit its shape.
    """
    found = []
    for name, number, shape, size, *lent in entries:
        item = ITEM_SIZE.get(number)
        dims = tuple(shape)
        if item is None or min(dims, default=0) < 0 or size < 0 or start + size > region:
            raise ProtocolError(f"tensor '{name}' of {size} bytes does not fit its region")
        count = math.prod(dims) * item
        how = lent[0] if lent else 0
        if how:
            if number == BYTES or how not in (LENT, LENT_AND_COPIED):
                raise ProtocolError(f"tensor '{name}' cannot be lent as {how}")
            count = LOAN_BYTES if how == LENT else LOAN_BYTES + count
        if (number != BYTES or how) and count != size:
            raise ProtocolError(f"tensor '{name}' has {size} bytes for shape {list(dims)}")
        found.append(Place(name, number, dims, start, size, how))
        start += aligned(size)
    return found, start


def request_places(layout: Any, region: int) -> list[list[Place]]:
    """Return the inputs of each request of EXECUTE. Raises ProtocolError as `places` does."""
    start = 0
    found = []
    for entries in layout:
        these, start = places(entries, start, region)
        found.append(these)
    return found


def answers(layout: Any, region: int) -> list[Answer | bool | None]:
    """Return the items of EXECUTED: an answer, or None, False, True; PROTOCOL.md says what these mean."""
    start = 0
    found: list[Answer | bool | None] = []
    for item in layout:
        if item is None or isinstance(item, bool):
            found.append(item)
            continue
        entries, error, parameters = item
        these, start = places(entries, start, region)
        found.append(Answer(these, None if error is None else (error[0], error[1]), parameters))
    return found


def request_item(described: bytes) -> Item:
    """Return the Item of one request of EXECUTE.

    described   the request's part of the layout: JSON
    Raises ProtocolError as `places` does.
    """
    found, end = places(json.loads(described), 0, _ANY)
    return Item(None, found, _extent(found), end, True, lends([found]))


def answer_item(described: bytes) -> Item:
    """Parse one item of EXECUTED or RESPOND. Its `value` is the item that `answers` returns.

    It is plain if it is an answer without error and parameters.
    """
    (answer,) = answers([json.loads(described)], _ANY)
    if not isinstance(answer, Answer):
        return Item(answer, [], 0, 0, False, False)
    found = answer.places
    end = aligned(_extent(found))
    plain = answer.error is None and not answer.parameters
    return Item(answer, found, _extent(found), end, plain, lends([found]))


def _extent(found: list[Place]) -> int:
    return found[-1].start + found[-1].size if found else 0


def lends(items: Sequence[Sequence[Place]]) -> bool:
    """Return whether any tensor is lent."""
    return any(place.lent for item in items for place in item)


class Memory:
    """Caches results that were computed from layouts. Any thread.

    get   returns the result that was added for an equal key, else None
    """

    def __init__(self) -> None:
        self._known: dict[Any, Any] = {}
        self.get = self._known.get

    def add(self, key: Any, size: int, found: Any) -> None:
        """Keep `found` if the layout has less than 8 KiB. When 256 results are kept, forget them first.

        size   bytes of the layout
        """
        if size < _REMEMBERED_BELOW:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[key] = found
