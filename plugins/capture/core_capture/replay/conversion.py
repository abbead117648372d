"""A record of one protocol as a record of the other one."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import quote

from core_capture.recording.headers import REDACTED
from core_capture.records.record import Record, RecordedMessage
from core_capture.tensors.forms import requests_of
from core_capture.tensors.grpc_form import INFER, encode_request
from core_capture.tensors.http_form import JSON_SIZE, encode_http
from core_capture.tensors.message import Unreadable

# Header fields that mean the same over both protocols.
_KEPT = frozenset(("authorization", "x-api-key", "traceparent", "tracestate"))


def converted(record: Record, protocol: str) -> Record:
    """Return a record with the same request for `protocol`, "http" or "grpc"; itself if it is of that one.

    Only inference of the v2 protocol with one request can be converted. Raises Unreadable for others.
    """
    if record.protocol == protocol:
        return record
    requests = requests_of(record)
    if len(requests) != 1:
        raise Unreadable(f"a stream of {len(requests)} requests has no form over HTTP")
    (request,) = requests
    kept = "".join(
        f"{name.lower()}: {value}\r\n"
        for name, value in record.fields
        if name.lower() in _KEPT and value != REDACTED
    )
    if protocol == "grpc":
        data = encode_request(request)
        head = f"POST {INFER} HTTP/2\r\n{kept}"
    else:
        json_size, data = encode_http(request)
        path = f"/v2/models/{quote(request.model, safe='')}"
        path += f"/versions/{request.version}" if request.version else ""
        head = f"POST {path}/infer HTTP/1.1\r\n{JSON_SIZE}: {json_size}\r\n{kept}"
    return replace(record, protocol=protocol, head=head, received=[RecordedMessage(0, data)])
