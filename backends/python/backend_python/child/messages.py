"""Requests out of a region, answers into one; for calls of other models the other way round."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from backend_python import layout, protocol
from backend_python.api.errors import ErrorCode, TritonError
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


def call(request: InferenceRequest, decoupled: bool) -> tuple[bytes, bytes, Pieces, int]:
    """A call of another model: fields and layout of INFER, what to write and the size of the region.

    TypeError or ValueError for a field that is not what InferenceRequest says.
    """
    pieces: Pieces = []
    entries, end = _entries(request._inputs, pieces, 0)
    fields = [
        speakable(request.model_name),
        int(request.model_version),
        decoupled,
        speakable(request._request_id),
        _spoken(request._correlation_id),
        int(request._flags),
        int(request._timeout),
        request._parameters,
        sorted(map(speakable, request._outputs)),
        request.trace()._key,
    ]
    return protocol.to_json(fields), protocol.to_json([entries]), pieces, end


def response(content: bytes, region: Any) -> tuple[InferenceResponse | None, bool]:
    """The response of an INFERRED, None if it only tells the end, and whether it is the last."""
    _, size, _, flags = protocol.ANSWER.unpack_from(content)
    (answer,) = layout.answers(json.loads(content[protocol.ANSWER.size :]), size)
    final = bool(flags & protocol.FINAL)
    if not isinstance(answer, layout.Answer):
        return None, final
    if answer.error is not None:
        code, text = answer.error
        return InferenceResponse(error=TritonError(text, ErrorCode(code))), final
    found = InferenceResponse(
        [
            Tensor._received(p.name, p.number, p.shape, region, p.start, p.size)
            for p in answer.places
        ]
    )
    found._parameters = answer.parameters
    return found, final


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
    outputs = [tensor for tensor in response._outputs if tensor._name in wanted]
    entries, start = _entries(outputs, pieces, start)
    return (entries, None, response._parameters), start


def _entries(
    tensors: Sequence[Tensor], pieces: Pieces, start: int
) -> tuple[tuple[layout.Entry, ...], int]:
    """Tensors as they stand in a layout; their bytes go to `pieces` from `start` on."""
    entries: list[layout.Entry] = []
    for tensor in tensors:
        data = tensor._wire()
        size = len(data)
        entries.append((tensor._name, tensor._number, tensor._shape, size))
        if size:
            pieces.append((start, data))
        start += aligned(size)
    return tuple(entries), start


def _spoken(correlation_id: int | str) -> int | str:
    return speakable(correlation_id) if isinstance(correlation_id, str) else int(correlation_id)
