"""The inference messages of calls, over HTTP and gRPC."""

from __future__ import annotations

import re
from collections.abc import Sequence

from core_capture.records.record import Record
from core_capture.tensors.grpc_form import (
    INFER,
    STREAM,
    decode_request,
    decode_response,
    decode_stream_response,
)
from core_capture.tensors.http_form import decode_http
from core_capture.tensors.message import InferMessage, Unreadable

_INFER = re.compile(r"/v2/models/([^/]+)(?:/versions/([^/]+))?/infer")


def requests_of(record: Record) -> list[InferMessage]:
    """Return the inference requests in a record: one, or those of a stream. Raises Unreadable."""
    if record.path in (INFER, STREAM):
        return [decode_request(each.data) for each in record.received]
    _check(record.path)
    found = decode_http(record.fields, record.body)
    found.model, found.version = record.model, record.version
    return [found]


def answers_of(
    path: str, fields: Sequence[tuple[str, str]], messages: Sequence[bytes]
) -> list[InferMessage]:
    """Return the responses of a call. Raises Unreadable for answers of another kind.

    path     of the call
    fields   header fields of the response
    """
    if path == INFER:
        return [decode_response(each) for each in messages]
    if path == STREAM:
        return [decode_stream_response(each) for each in messages]
    _check(path)
    return [decode_http(fields, b"".join(messages))]


def _check(path: str) -> None:
    if _INFER.fullmatch(path) is None:
        raise Unreadable(f"{path} is no inference of the v2 protocol")
