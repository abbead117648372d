"""A batch, or the answer of a called model, as a message: what goes into the region, how it is told."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

import orjson

from backend_python.arena import aligned
from backend_python.strings import speakable
from core.batch import Batch
from core.errors import CoreError
from core.native.gather import gather
from core.request import InferenceRequest
from core.response import InferenceResponse
from core.tensor import Buffer, Tensor

COPIED_ON_THE_LOOP = 1 << 20  # bytes; more are copied on a thread
_GATHERED_FROM = 1 << 16  # bytes; a larger piece is copied without the GIL


class Parts(NamedTuple):
    """One EXECUTE or INFERRED."""

    pieces: list[tuple[int, Buffer]]  # offset in the region, wire bytes
    size: int  # of the region
    layout: bytes
    fields: bytes  # b"" if every request has the defaults


def parts_of(batch: Batch) -> Parts:
    """The message of a batch; nothing is copied yet, but BYTES of JSON are encoded."""
    pieces: list[tuple[int, Buffer]] = []
    layout: list[Any] = []
    fields: list[Any] = []
    plain = True
    end = 0
    for request in batch.requests:
        entries, end = _entries(request.inputs.values(), pieces, end)
        layout.append(entries)
        told = _fields(request)
        plain = plain and told is None
        fields.append(told)
    return Parts(pieces, end, orjson.dumps(layout), b"" if plain else orjson.dumps(fields))


def parts_of_answer(item: InferenceResponse | CoreError | None) -> Parts:
    """The message of one answer of a called model; None if only the end is to be told."""
    pieces: list[tuple[int, Buffer]] = []
    if item is None:
        return Parts(pieces, 0, b"[null]", b"")
    if isinstance(item, CoreError):
        told = [[], [item.kind.value, speakable(item.message)], ""]
        return Parts(pieces, 0, orjson.dumps([told]), b"")
    entries, end = _entries(item.outputs, pieces, 0)
    parameters = json.dumps(item.parameters) if item.parameters else ""
    return Parts(pieces, end, orjson.dumps([[entries, None, parameters]]), b"")


def _entries(
    tensors: Iterable[Tensor], pieces: list[tuple[int, Buffer]], end: int
) -> tuple[list[Any], int]:
    """Tensors as they stand in a layout; their bytes go to `pieces` from `end` on."""
    entries = []
    for tensor in tensors:
        raw = tensor.raw
        size = len(raw) if type(raw) is bytes else memoryview(raw).nbytes
        entries.append((tensor.name, tensor.dtype.number, tensor.shape, size))
        if size:
            pieces.append((end, raw))
        end += aligned(size)
    return entries, end


def _fields(request: InferenceRequest) -> list[Any] | None:
    """What a request tells about itself; None if it has nothing but tensors."""
    if not (
        request.id
        or request.correlation_id
        or request.flags
        or request.timeout_us
        or request.parameters
        or request.outputs
        or request.trace
    ):
        return None
    return [
        request.id,
        request.correlation_id,
        request.flags,
        request.timeout_us,
        json.dumps(request.parameters) if request.parameters else "",
        [output.name for output in request.outputs] or None,
        None,
    ]


def write(memory: memoryview, offset: int, parts: Parts) -> None:
    """Copy the pieces into their region; large ones without the GIL."""
    for start, data in parts.pieces:
        at = offset + start
        size = len(data) if type(data) is bytes else memoryview(data).nbytes
        if size < _GATHERED_FROM:
            memory[at : at + size] = data
        else:
            gather([data], memory, at)
