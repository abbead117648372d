"""A batch, or the answer of a called model, as a message: what goes into the region, how it is told."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, NamedTuple

import orjson

from backend_python.arena import ALIGNMENT
from backend_python.protocol import to_json
from backend_python.strings import speakable
from core.errors import CoreError
from core.layout import Entry, Layouts
from core.native.gather import gather
from core.request import InferenceRequest
from core.response import InferenceResponse
from core.tensor import Buffer

COPIED_ON_THE_LOOP = 1 << 20  # bytes; more are copied on a thread


class Parts(NamedTuple):
    """One EXECUTE or INFERRED."""

    tensors: list[Buffer]  # what the region holds, each at the next multiple of ALIGNMENT
    size: int  # of the region
    layout: bytes
    fields: bytes  # b"" if every request has the defaults


class Encoder:
    """Remembers how requests with equal tensors are told. Loop thread.

    outputs   names of all outputs of the model that is asked
    states    names of those that it also gives when a client wants only others
    """

    def __init__(self, outputs: Collection[str] = (), states: Collection[str] = ()) -> None:
        self._states = list(states)
        self._requests = Layouts(to_json, ALIGNMENT, outputs)
        self._answers = Layouts(_told_answer, ALIGNMENT)

    def batch(self, requests: list[InferenceRequest]) -> Parts:
        """The message of a batch; nothing is copied yet, but BYTES of JSON are encoded."""
        laid = self._requests.batch(requests)
        told = b"[%s]" % b",".join(laid.items)
        if laid.plain:
            return Parts(laid.parts, laid.size, told, b"")
        fields = orjson.dumps([_fields(request, self._states) for request in requests])
        return Parts(laid.parts, laid.size, told, fields)

    def answer(self, item: InferenceResponse | CoreError | None) -> Parts:
        """The message of one answer of a called model; None if only the end is to be told."""
        if item is None:
            return Parts([], 0, b"[null]", b"")
        if isinstance(item, CoreError):
            failed = [[], [item.kind.value, speakable(item.message)], ""]
            return Parts([], 0, orjson.dumps([failed]), b"")
        laid = self._answers.tensors(item.outputs)
        told = laid.items[0]
        if item.has_parameters:
            entries, _, _ = orjson.loads(told)
            told = orjson.dumps([entries, None, json.dumps(item.parameters)])
        return Parts(laid.parts, laid.size, b"[%s]" % told, b"")


def _told_answer(entries: tuple[Entry, ...]) -> bytes:
    return to_json((entries, None, ""))


def _fields(request: InferenceRequest, states: list[str]) -> list[Any]:
    """What a request tells about itself."""
    return [
        request.id,
        request.correlation_id,
        request.flags,
        request.timeout_us,
        json.dumps(request.parameters) if request.has_parameters else "",
        [output.name for output in request.outputs] + states if request.outputs else None,
        None if request.trace is None else request.trace.carrier(),
    ]


def write(memory: memoryview, offset: int, tensors: list[Buffer]) -> None:
    """Copy tensors into their region, large ones without the GIL. Any thread."""
    gather(tensors, memory, offset, ALIGNMENT)
