"""Encode a batch, or an answer of a called model, as a message: region contents, layout and fields."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from backend_python.arena import ALIGNMENT
from backend_python.items import joined
from backend_python.protocol import to_json
from backend_python.server.byte_layout import LayoutCache
from backend_python.server.errors import code_of
from backend_python.strings import speakable
from core.errors import CoreError
from core.native.gather import gather
from core.request import InferenceRequest
from core.response import InferenceResponse
from core.tensor import Buffer

if TYPE_CHECKING:
    from backend_python.server.lending import Lending

COPIED_ON_THE_LOOP = 1 << 20  # bytes; more are copied on a thread


class Parts(NamedTuple):
    """The parts of one EXECUTE or INFERRED."""

    tensors: list[Buffer]  # contents of the region, each at the next multiple of ALIGNMENT
    size: int  # of the region
    layout: bytes
    fields: bytes  # b"" if every request has the defaults
    lends: bool = False  # of INFERRED only: it lends a tensor


class Encoder:
    """Encoder of messages, with a cache of the layouts of equal tensors.

    Not thread-safe: call from the event loop only, unless stated otherwise.

    outputs   names of all outputs of the model
    states    names of the outputs that are always requested, also if a client requests only others
    lending   lends tensors on GPUs; None if there are no GPUs
    """

    def __init__(
        self,
        outputs: Collection[str] = (),
        states: Collection[str] = (),
        lending: Lending | None = None,
    ) -> None:
        self._lending = lending
        self._states = list(states)
        self._requests = LayoutCache(to_json, ALIGNMENT, outputs)
        self._answers = LayoutCache(lambda entries: to_json((entries, None, "")), ALIGNMENT)

    def batch(self, requests: list[InferenceRequest]) -> Parts:
        """Return the message of a batch. This copies no tensors, but it encodes BYTES that came as JSON."""
        laid = self._requests.batch(requests)
        described = joined(laid.items)
        if self._lending is not None:
            return Parts(laid.parts, laid.size, described, self._fields_there(requests, laid.plain))
        if laid.plain:
            return Parts(laid.parts, laid.size, described, b"")
        if laid.named:
            fields = orjson.dumps([request.id for request in requests])
        else:
            fields = orjson.dumps([_fields(request, self._states) for request in requests])
        return Parts(laid.parts, laid.size, described, fields)

    def _fields_there(self, requests: list[InferenceRequest], plain: bool) -> bytes:
        """Return the fields of a batch for a child with GPUs; b"" if `plain` and no output may stay on a GPU.

        If any output may stay, the fields of each request end with its outputs that may (see `staying`).
        """
        assert self._lending is not None
        stays = self._lending.staying(requests)
        if stays is None:
            if plain:
                return b""
            return orjson.dumps([_fields(request, self._states) for request in requests])
        fields = [
            [*_fields(request, self._states), stay]
            for request, stay in zip(requests, stays, strict=True)
        ]
        return orjson.dumps(fields)

    def batch_there(self, requests: list[InferenceRequest]) -> Parts:
        """Return the message of a batch with inputs on a GPU. Thread-safe; it may wait for the device.

        Raise CoreError if an input must be copied to host memory and the copy fails.
        """
        assert self._lending is not None
        lends = self._lending.lends(self._lending.takes, ALIGNMENT)
        items = [to_json(lends.entries(request.inputs.values())) for request in requests]
        fields = self._fields_there(requests, False)
        return Parts(lends.parts, lends.size, joined(items), fields)

    def answer_there(self, item: InferenceResponse, takes: frozenset[bytes]) -> Parts:
        """Return the message of an answer with tensors on GPUs. Thread-safe; it may wait for the device.
        `takes` has the UUIDs of the GPUs on which the caller takes tensors."""
        assert self._lending is not None
        lends = self._lending.lends(takes, ALIGNMENT)
        entries = lends.entries(item.outputs)
        parameters = json.dumps(item.parameters) if item.has_parameters else ""
        described = to_json([[entries, None, parameters]])
        return Parts(lends.parts, lends.size, described, b"", bool(lends.numbers))

    def answer(self, item: InferenceResponse | CoreError | None) -> Parts:
        """Return the message of one answer of a called model. `item` None only marks the end."""
        if item is None:
            return Parts([], 0, b"[null]", b"")
        if isinstance(item, CoreError):
            failed = [[], [code_of(item).value, speakable(item.message)], ""]
            return Parts([], 0, orjson.dumps([failed]), b"")
        laid = self._answers.tensors(item.outputs)
        described = laid.items[0]
        if item.has_parameters:
            entries, _, _ = orjson.loads(described)
            described = orjson.dumps([entries, None, json.dumps(item.parameters)])
        return Parts(laid.parts, laid.size, b"[%s]" % described, b"")


def _fields(request: InferenceRequest, states: list[str]) -> list[Any]:
    """Return the fields of a request other than its tensors, as `_tell` of child/messages.py takes them.

    states   names of the outputs that update a state; wanted whatever the request names
    """
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
    """Copy tensors into their region. It releases the GIL while it copies large tensors. Thread-safe."""
    gather(tensors, memory, offset, ALIGNMENT)
