"""A batch as a message: what goes into the region, and how it is told."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import orjson

from backend_python.arena import aligned
from core.batch import Batch
from core.native.gather import gather
from core.request import InferenceRequest
from core.tensor import Buffer

_GATHERED_FROM = 1 << 16  # bytes; a larger piece is copied without the GIL


class Parts(NamedTuple):
    """One EXECUTE."""

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
        entries = []
        for tensor in request.inputs.values():
            raw = tensor.raw
            size = len(raw) if type(raw) is bytes else memoryview(raw).nbytes
            entries.append((tensor.name, tensor.dtype.number, tensor.shape, size))
            if size:
                pieces.append((end, raw))
            end += aligned(size)
        layout.append(entries)
        told = _fields(request)
        plain = plain and told is None
        fields.append(told)
    return Parts(pieces, end, orjson.dumps(layout), b"" if plain else orjson.dumps(fields))


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
