"""How the tensors of a batch lie in one run of bytes, for backends whose models run in other processes.

Batch ─► [LayoutCache] ─► bytes of a message … bytes of the answer ─► [answers] ─► Batch.respond_all.
Batches are alike most of the time: what the other side must be told about a request's tensors is
made once for all requests that are alike.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from core.dtypes import DataType
from core.native.arrays import length, part
from core.request import InferenceRequest, RequestedOutput
from core.tensor import Buffer, Tensor, new_tensor

Entry = tuple[str, int, tuple[int, ...], int]
"""One tensor: name, number of the datatype, shape, bytes."""

_REMEMBERED = 256  # items
_REMEMBERED_BELOW = 1 << 13  # bytes of an item


class TensorSlice:
    """One tensor in a run of bytes: `size` of them, from `start` on."""

    def __init__(self, name: str, dtype: DataType, shape: tuple[int, ...], start: int, size: int):
        self.name = name
        self.dtype = dtype
        self.shape = shape
        self.start = start
        self.size = size


class ByteLayout:
    """What a batch is as bytes.

    items   what `tell` made of the tensors of each request
    parts   bytes of the tensors, in the order of the items; nothing is copied yet
    size    of all parts, each filled up to a multiple of the alignment
    plain   whether the requests are no more than their tensors
    named   whether they have ids at most besides
    """

    def __init__(self) -> None:
        self.items: list[bytes] = []
        self.parts: list[Buffer] = []
        self.size = 0
        self.plain = True
        self.named = True


class LayoutCache:
    """Remembers what was told about tensors. One thread at a time.

    tell        makes of the tensors of a request what the other side is told about them, not b""
    alignment   where a tensor may begin: its multiples
    outputs     names of all outputs of the model: a request that names them all wants what one wants
                that names none
    """

    def __init__(
        self,
        tell: Callable[[tuple[Entry, ...]], bytes],
        alignment: int,
        outputs: Collection[str] = (),
    ):
        self._tell = tell
        self._alignment = alignment
        self._outputs = tuple(outputs)
        self._known: dict[tuple[Entry, ...], bytes] = {}
        # What was told of tensors by the shape of the first of them: that is, of requests with as many rows.
        self._by_shape: dict[tuple[int, ...], tuple[list[TensorSlice], bytes]] = {}

    def batch(self, requests: list[InferenceRequest]) -> ByteLayout:
        """The inputs of all requests."""
        layout = ByteLayout()
        for request in requests:
            layout.items.append(self._item(list(request.inputs.values()), layout))
            if layout.named and not self._is_no_more(request):
                layout.plain = layout.named = False
            elif request.id:
                layout.plain = False
        return layout

    def tensors(self, tensors: list[Tensor]) -> ByteLayout:
        """These tensors, as one item."""
        layout = ByteLayout()
        layout.items.append(self._item(tensors, layout))
        return layout

    def _item(self, tensors: list[Tensor], layout: ByteLayout) -> bytes:
        like = self._by_shape.get(tensors[0].shape) if tensors else None
        last: list[TensorSlice] = [] if like is None else like[0]
        known = like is not None and len(tensors) == len(last)
        end = layout.size
        for i in range(len(tensors)):
            tensor = tensors[i]
            raw = tensor._raw if tensor._raw is not None else tensor.raw
            size = length(raw)
            layout.parts.append(raw)
            end += size
            gap = end % self._alignment
            if gap:
                end += self._alignment - gap
            if known:
                place = last[i]
                known = (
                    place.size == size
                    and place.dtype is tensor.dtype
                    and place.shape == tensor.shape
                    and place.name == tensor.name
                )
        layout.size = end
        return like[1] if known and like is not None else self._other_item(tensors)

    def _other_item(self, tensors: list[Tensor]) -> bytes:
        """That of tensors which are not like the last ones of that shape."""
        places = [TensorSlice(t.name, t.dtype, t.shape, 0, length(t.raw)) for t in tensors]
        entries = tuple([(p.name, p.dtype.number, p.shape, p.size) for p in places])
        if (item := self._known.get(entries)) is None:
            item = self._tell(entries)
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            if len(item) < _REMEMBERED_BELOW:
                self._known[entries] = item
        if places:
            if len(self._by_shape) >= _REMEMBERED:
                self._by_shape.clear()
            if len(item) < _REMEMBERED_BELOW:
                self._by_shape[places[0].shape] = places, item
        return item

    def _is_no_more(self, request: InferenceRequest) -> bool:
        """Whether a request has nothing besides tensors and an id."""
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


def answers(
    items: list[list[TensorSlice]], starts: list[int], region: Buffer, offset: int
) -> list[list[Tensor]]:
    """The tensors of each item, copied out of `region` if it is bytes, else views of it.

    items    with places that lie within the region, counted from the beginning of their item
    starts   of each item, where in the run it begins
    offset   where in `region` the run begins
    """
    found = []
    for i in range(len(items)):
        places = items[i]
        begin = offset + starts[i]
        tensors = []
        for place in places:
            raw = part(region, begin + place.start, place.size)
            tensors.append(new_tensor(place.name, place.dtype, place.shape, raw, None))
        found.append(tensors)
    return found
