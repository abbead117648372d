"""Requests out of a region, answers into one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from backend_python import layout, protocol
from backend_python.api.host import Host
from backend_python.api.request import (
    TRITONSERVER_REQUEST_RELEASE_RESCHEDULE,
    InferenceRequest,
)
from backend_python.api.response import InferenceResponse
from backend_python.api.tensor import Tensor
from backend_python.arena import Receiver, aligned
from backend_python.protocol import Frame
from backend_python.strings import speakable

Pieces = list[tuple[int, Any]]  # offset in the region, bytes to write there


class RequestDecoder:
    """EXECUTE → the model's InferenceRequests. The thread that executes."""

    def __init__(self, host: Host, inputs: Receiver, output_names: Sequence[str], decoupled: bool):
        self._host = host
        self._in = inputs
        self._all = frozenset(output_names)
        self._decoupled = decoupled
        self._layouts = layout.Memory()

    def requests(self, frame: Frame) -> list[InferenceRequest]:
        offset, size, length = protocol.REGION.unpack_from(frame.content)
        end = protocol.REGION.size + length
        described = frame.content[protocol.REGION.size : end]
        placed = self._layouts.of(
            (described, size),
            length,
            lambda: layout.request_places(json.loads(described), size),
        )
        fields = json.loads(frame.content[end:]) if len(frame.content) > end else ()
        region = self._in.take(offset, size) if size else b""
        return [
            self._request(frame.number, i, places, region, fields[i] if fields else None)
            for i, places in enumerate(placed)
        ]

    def _request(
        self, batch: int, i: int, places: list[layout.Place], region: Any, fields: Any
    ) -> InferenceRequest:
        received = Tensor._received
        inputs = [received(p.name, p.number, p.shape, region, p.start, p.size) for p in places]
        key = (batch, i)
        if not fields:
            return InferenceRequest._received(
                self._host, key, inputs, self._all, decoupled=self._decoupled
            )
        request_id, correlation_id, flags, timeout, parameters, outputs, trace = fields
        return InferenceRequest._received(
            self._host,
            key,
            inputs,
            self._all if outputs is None else frozenset(outputs),
            decoupled=self._decoupled,
            request_id=request_id,
            correlation_id=correlation_id,
            flags=flags,
            timeout=timeout,
            parameters=parameters,
            trace=trace,
        )


class AnswerEncoder:
    """InferenceResponses → a layout and the pieces of its region. One thread at a time."""

    def __init__(self) -> None:
        self._layouts = layout.Memory()

    def batch(
        self, requests: list[InferenceRequest], responses: list[InferenceResponse | None]
    ) -> tuple[bytes, Pieces, int]:
        """The layout of EXECUTED, what to write and the size of the region."""
        pieces: Pieces = []
        items: list[Any] = []
        end = 0
        for request, response in zip(requests, responses, strict=True):
            if response is not None:
                item, end = _item(response, request._outputs, pieces, end)
                items.append(item)
            elif request._release_flags == TRITONSERVER_REQUEST_RELEASE_RESCHEDULE:
                items.append(True)
            else:
                items.append(None if request._sender is None else False)
        key = tuple(items)
        return self._layouts.of(key, 64 * len(pieces), lambda: protocol.to_json(items)), pieces, end


def one(response: InferenceResponse | None, wanted: frozenset[str]) -> tuple[bytes, Pieces, int]:
    """The same for one answer of a stream: the layout of RESPOND."""
    pieces: Pieces = []
    if response is None:
        return b"[null]", pieces, 0
    item, end = _item(response, wanted, pieces, 0)
    return protocol.to_json([item]), pieces, end


def write(memory: memoryview, offset: int, pieces: Pieces) -> None:
    """Copy the pieces into their region."""
    for start, data in pieces:
        at = offset + start
        memory[at : at + len(data)] = data


def _item(
    response: InferenceResponse, wanted: frozenset[str], pieces: Pieces, start: int
) -> tuple[Any, int]:
    """One answer as it stands in a layout; its tensors go to `pieces` from `start` on."""
    error = response._error
    if error is not None:
        return ((), (int(error._code), speakable(error._message)), ""), start
    entries: list[layout.Entry] = []
    for tensor in response._outputs:
        if tensor._name in wanted:
            data = tensor._wire()
            size = len(data)
            entries.append((tensor._name, tensor._number, tensor._shape, size))
            if size:
                pieces.append((start, data))
            start += aligned(size)
    return (tuple(entries), None, response._parameters), start
