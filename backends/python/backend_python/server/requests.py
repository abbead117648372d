"""A batch, or the answer of a called model, as a message: what goes into the region, how it is told."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import orjson

from backend_python import layout
from backend_python.arena import ALIGNMENT
from backend_python.strings import speakable
from core.errors import CoreError
from core.native.gather import gather
from core.request import InferenceRequest
from core.response import InferenceResponse
from core.tensor import Buffer, Tensor

_LAST = ALIGNMENT - 1
COPIED_ON_THE_LOOP = 1 << 20  # bytes; more are copied on a thread


class Parts(NamedTuple):
    """One EXECUTE or INFERRED."""

    pieces: list[Buffer]  # the bytes of the region, one behind the other
    size: int  # of the region
    layout: bytes
    fields: bytes  # b"" if every request has the defaults


class Encoder:
    """Remembers how requests with equal tensors are told. Loop thread.

    outputs   names of all outputs of the model that is asked
    """

    def __init__(self, outputs: Collection[str] = ()) -> None:
        self._all = frozenset(outputs)
        self._requests = layout.Items()
        self._answers = layout.Items(lambda entries: (entries, None, ""))

    def batch(self, requests: Sequence[InferenceRequest]) -> Parts:
        """The message of a batch; nothing is copied yet, but BYTES of JSON are encoded."""
        pieces: list[Buffer] = []
        items: list[bytes] = []
        fields: list[Any] = []
        plain = True
        end = 0
        for request in requests:
            entries, end = _entries(request.inputs.values(), pieces, end)
            items.append(self._requests.get(entries) or self._requests.add(entries))
            if (
                request.id
                or request.correlation_id
                or request.flags
                or request.timeout_us
                or request.parameters
                or (request.outputs and not self._wants_all(request))
                or request.trace
            ):
                plain = False
                fields.append(_fields(request))
            else:
                fields.append(None)
        told_fields = b"" if plain else orjson.dumps(fields)
        return Parts(pieces, end, b"[%s]" % b",".join(items), told_fields)

    def _wants_all(self, request: InferenceRequest) -> bool:
        """Many clients name every output: that is as good as naming none."""
        names = {output.name for output in request.outputs}
        return names == self._all

    def answer(self, item: InferenceResponse | CoreError | None) -> Parts:
        """The message of one answer of a called model; None if only the end is to be told."""
        pieces: list[Buffer] = []
        if item is None:
            return Parts(pieces, 0, b"[null]", b"")
        if isinstance(item, CoreError):
            failed = [[], [item.kind.value, speakable(item.message)], ""]
            return Parts(pieces, 0, orjson.dumps([failed]), b"")
        entries, end = _entries(item.outputs, pieces, 0)
        if not item.parameters:
            told = self._answers.get(entries) or self._answers.add(entries)
            return Parts(pieces, end, b"[%s]" % told, b"")
        return Parts(pieces, end, orjson.dumps([[entries, None, json.dumps(item.parameters)]]), b"")


def _entries(
    tensors: Iterable[Tensor], pieces: list[Buffer], end: int
) -> tuple[tuple[layout.Entry, ...], int]:
    """Tensors as they stand in a layout; their bytes go to `pieces`, whose size so far is `end`."""
    entries = []
    for tensor in tensors:
        raw = tensor.raw
        size = len(raw) if type(raw) is bytes else memoryview(raw).nbytes
        entries.append((tensor.name, tensor.dtype.number, tensor.shape, size))
        pieces.append(raw)
        end += size
        if gap := -end & _LAST:
            pieces.append(bytes(gap))
            end += gap
    return tuple(entries), end


def _fields(request: InferenceRequest) -> list[Any]:
    """What a request tells about itself."""
    return [
        request.id,
        request.correlation_id,
        request.flags,
        request.timeout_us,
        json.dumps(request.parameters) if request.parameters else "",
        [output.name for output in request.outputs] or None,
        None,
    ]


def write(memory: memoryview, offset: int, pieces: Sequence[Buffer]) -> None:
    """Copy the pieces into their region, large ones without the GIL. Any thread."""
    gather(list(pieces), memory, offset)
