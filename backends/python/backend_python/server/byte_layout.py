"""Layout of a batch's tensors in one run of bytes, for models in other processes.

Batch ─► [LayoutCache] ─► bytes of a message … bytes of the response ─► [tensors_of] ─► Batch.respond_all.
Most requests have the same names, datatypes and shapes: they share one cached description of their tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from core.dtypes import DataType
from core.native.arrays import length
from core.request import InferenceRequest, RequestedOutput
from core.tensor import Buffer, Tensor, tensor_part

Entry = tuple[str, int, tuple[int, ...], int]
"""One tensor: name, number of the datatype, shape, bytes."""

_MOST_CACHED = 256  # items
_MOST_ITEM_BYTES = 1 << 13  # bytes of an item


class TensorSlice:
    """One tensor in a run of bytes: `size` bytes at offset `start`."""

    def __init__(self, name: str, dtype: DataType, shape: tuple[int, ...], start: int, size: int):
        self.name = name
        self.dtype = dtype
        self.shape = shape
        self.start = start
        self.size = size


class ByteLayout:
    """A batch as bytes.

    items   description of the tensors, one for each request
    parts   bytes of the tensors in the order of the items, not copied
    size    total size of the parts, each padded to a multiple of the alignment
    plain   whether the requests have only tensors; priorities and deadlines do not count
    named   whether the requests have only tensors and ids
    """

    items: list[bytes]
    parts: list[Buffer]
    size: int
    plain: bool
    named: bool


def _new_layout() -> ByteLayout:
    """Return a layout of nothing. Compiled, it costs less than a constructor."""
    layout: ByteLayout = ByteLayout.__new__(ByteLayout)
    layout.items, layout.parts = [], []
    layout.size, layout.plain, layout.named = 0, True, True
    return layout


class LayoutCache:
    """Creates layouts, and caches descriptions of tensors. Not thread-safe: one thread at a time.

    describe    returns the description of a request's tensors for the other process; must not be b""
    alignment   tensors start at multiples of it
    outputs     names of all outputs of the model; to ask for all of them, or for none, means the same
    """

    def __init__(
        self,
        describe: Callable[[tuple[Entry, ...]], bytes],
        alignment: int,
        outputs: Collection[str] = (),
    ):
        self._describe = describe
        self._alignment = alignment
        self._outputs = tuple(outputs)
        self._known: dict[tuple[Entry, ...], bytes] = {}
        # Last description by the shape of the first tensor, that is, by the number of rows.
        self._by_shape: dict[tuple[int, ...], tuple[list[TensorSlice], bytes]] = {}

    def batch(self, requests: list[InferenceRequest]) -> ByteLayout:
        """Return the layout of the inputs of all requests."""
        layout = _new_layout()
        for request in requests:
            inputs = request.inputs
            tensors = []
            for tensor in inputs.values():  # of a dict, this costs less than list(inputs.values())
                tensors.append(tensor)
            layout.items.append(self._item(tensors, layout))
            if request.has_only_inputs():  # as most requests have
                continue
            if layout.named and not self._has_only_tensors(request):
                layout.plain = layout.named = False
            elif request.id:
                layout.plain = False
        return layout

    def tensors(self, tensors: list[Tensor]) -> ByteLayout:
        """Return the layout of these tensors as one item."""
        layout = _new_layout()
        layout.items.append(self._item(tensors, layout))
        return layout

    def _item(self, tensors: list[Tensor], layout: ByteLayout) -> bytes:
        like = self._by_shape.get(tensors[0].shape) if tensors else None
        last: list[TensorSlice] = [] if like is None else like[0]
        known = like is not None and len(tensors) == len(last)
        end = layout.size
        for i in range(len(tensors)):
            tensor = tensors[i]
            raw = tensor.raw
            size = len(raw) if type(raw) is bytes else length(raw)
            layout.parts.append(raw)
            end += size
            gap = end % self._alignment
            if gap:
                end += self._alignment - gap
            if known:
                each = last[i]
                known = (
                    each.size == size
                    and each.dtype is tensor.dtype
                    and (
                        i == 0 or each.shape == tensor.shape
                    )  # `like` was found by the first shape
                    and each.name == tensor.name
                )
        layout.size = end
        return like[1] if known and like is not None else self._other_item(tensors)

    def _other_item(self, tensors: list[Tensor]) -> bytes:
        """Return the description of tensors that differ from the last ones of that shape."""
        slices = [TensorSlice(t.name, t.dtype, t.shape, 0, length(t.raw)) for t in tensors]
        entries = tuple([(p.name, p.dtype.number, p.shape, p.size) for p in slices])
        if (item := self._known.get(entries)) is None:
            item = self._describe(entries)
            if len(self._known) >= _MOST_CACHED:
                self._known.clear()
            if len(item) < _MOST_ITEM_BYTES:
                self._known[entries] = item
        if slices:
            if len(self._by_shape) >= _MOST_CACHED:
                self._by_shape.clear()
            if len(item) < _MOST_ITEM_BYTES:
                self._by_shape[slices[0].shape] = slices, item
        return item

    def _has_only_tensors(self, request: InferenceRequest) -> bool:
        """Return whether a request has only tensors, maybe an id, and asks for all outputs or names none."""
        if (
            request.correlation_id
            or request.flags
            or request.timeout_us
            or request.has_parameters
            or request.trace is not None
        ):
            return False
        return not request.outputs or self._wants_all(request.outputs)

    def _wants_all(self, outputs: Sequence[RequestedOutput]) -> bool:
        if len(outputs) == len(self._outputs):
            for i in range(len(outputs)):
                output = outputs[i]
                if output.name != self._outputs[i]:
                    break
            else:
                return True
        return {output.name for output in outputs} == set(self._outputs)


def tensors_of(
    items: list[list[TensorSlice]], starts: list[int], region: Buffer, offset: int
) -> list[list[Tensor]]:
    """Return the tensors of each item: copies if `region` is bytes, else views of it.

    items    slices of each item, relative to the start of the item; they are within the region
    starts   start of each item in the run
    offset   start of the run in `region`
    """
    found = []
    for i in range(len(items)):
        slices = items[i]
        begin = offset + starts[i]
        tensors = []
        for each in slices:
            tensors.append(
                tensor_part(
                    each.name, each.dtype, each.shape, region, begin + each.start, each.size
                )
            )
        found.append(tensors)
    return found
