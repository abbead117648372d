"""The items of a layout. Parsed items are cached by their bytes.

described ─► [Known] ─► Laid ─► tensors

The layout of a batch seldom equals an earlier one, because the rows of its requests differ. Its items do:
there are only as many different ones as numbers of rows. So an item is found by its bytes, and only its
offset is computed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from backend_python.api.tensor import Tensor, received
from backend_python.protocol import ProtocolError

if TYPE_CHECKING:
    import cython
else:
    from backend_python import uncompiled as cython

SEPARATOR = b",\n"  # between items: JSON without spaces has a line break nowhere else
_BEGIN, _END = b"[]"
_REMEMBERED = 256  # items
_REMEMBERED_BELOW = 1 << 13  # bytes of one item


def joined(items: list[bytes]) -> bytes:
    """Return the layout, a JSON list, of items that are JSON texts."""
    return b"[%s]" % SEPARATOR.join(items)


@cython.freelist(8)
@cython.cclass
class Item:
    """One item, at any offset.

    value     content of the item beside its tensors; `parse` of Known decides its type
    places    its tensors, with `start` counted from the beginning of the item
    extent    bytes that its tensors need
    size      bytes up to the beginning of the next item
    plain     whether it is of the most common kind; `parse` of Known decides what that is
    lends     whether it has tensors on a GPU
    """

    value: Any
    places: list[Any]
    extent: int
    size: int
    plain: bool
    lends: bool

    def __init__(
        self, value: Any, places: list[Any], extent: int, size: int, plain: bool, lends: bool
    ):
        self.value = value
        self.places = places
        self.extent = extent
        self.size = size
        self.plain = plain
        self.lends = lends


@cython.freelist(8)
@cython.cclass
class Laid:
    """The items of one layout.

    starts   offset of each item in the region
    plain    whether all items are plain
    lends    whether any item lends
    """

    items: list[Item]
    starts: list[int]
    plain: bool
    lends: bool


class Known:
    """Returns the items of layouts, and parses only items whose bytes it does not remember. Not thread-safe.

    parse   makes an Item from JSON; raises ProtocolError or another exception if it is invalid
    """

    def __init__(self, parse: Callable[[bytes], Item]):
        self._parse = parse
        self._known: dict[bytes, Item] = {}

    def of(self, described: bytes, region: int) -> Laid:
        """Return the items of a layout in a region of `region` bytes.

        Raises ProtocolError for tensors that exceed the region, and what `parse` raises.
        """
        laid: Laid = Laid.__new__(Laid)
        laid.items = []
        laid.starts = []
        laid.plain = True
        laid.lends = False
        if len(described) < 2 or described[0] != _BEGIN or described[-1] != _END:
            raise ProtocolError("a layout is a list")
        start = 0
        for part in described[1:-1].split(SEPARATOR) if len(described) > 2 else ():
            item = self._known.get(part)
            if item is None:
                item = self._add(part)
            if item.extent > region - start:
                raise ProtocolError(
                    f"item {len(laid.items)} of {item.extent} bytes does not fit into its region"
                )
            laid.items.append(item)
            laid.starts.append(start)
            start += item.size
            if not item.plain:
                laid.plain = False
            if item.lends:
                laid.lends = True
        return laid

    def _add(self, part: bytes) -> Item:
        item = self._parse(part)
        if len(part) < _REMEMBERED_BELOW:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[part] = item
        return item


def tensors(laid: Laid, region: Any) -> list[list[Tensor]]:
    """Return the tensors of each item, as views of the region. The items' places must be layout.Place."""
    found = []
    for i in range(len(laid.items)):
        item = laid.items[i]
        start = laid.starts[i]
        these = []
        for name, number, shape, at, size, _ in item.places:
            these.append(received(name, number, shape, region, start + at, size))
        found.append(these)
    return found
