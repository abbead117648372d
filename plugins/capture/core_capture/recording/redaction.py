"""TensorRedaction: records without the elements of named tensors.

Names, datatypes and shapes stay; numbers become 0 and strings "". A body that cannot be read is dropped as a
whole, so that nothing leaks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

import orjson

from core_capture.recording.json_redaction import JsonRedaction, blank, read_object
from core_capture.records.record import Record, RecordedMessage
from core_capture.tensors.grpc_form import redacted
from core_capture.tensors.http_form import JSON_SIZE, unpacked, value_of
from core_capture.tensors.message import Unreadable, pack, unpack

ALL = "*"
"""Stands in `Record.redacted` for a body that was dropped."""

_INFER = re.compile(r"/v2/models/[^/]+(?:/versions/[^/]+)?/infer")
_ENCODING = "Content-Encoding"
_FIELDS_OF_EVENTS = (b"", b"event", b"id", b"retry")  # those without data; "" begins a comment


class TensorRedaction:
    """Redacts records in place. Thread-safe.

    names   patterns of names of tensors; in JSON without tensors, such as that of `generate`, of members at
            any depth
    """

    def __init__(self, names: Sequence[str]):
        self._names = tuple(names)
        self._json = JsonRedaction(self._matches)

    def redact(self, record: Record) -> None:
        """Redact a record in place, and note in `redacted` what was replaced."""
        if not self._names:
            return
        found: set[str] = set()
        redact = self._redact_grpc if record.protocol == "grpc" else self._redact_http
        for is_answer in (False, True):
            try:
                redact(record, is_answer, found)
            except Unreadable:
                messages = record.sent if is_answer else record.received
                if any(each.data for each in messages):
                    messages[:] = []
                    record.cut = True
                    found.add(ALL)
        record.redacted = sorted(found)

    def _matches(self, name: str) -> bool:
        return any(fnmatchcase(name, each) for each in self._names)

    # HTTP ------------------------------------------------------------------------------

    def _redact_http(self, record: Record, is_answer: bool, found: set[str]) -> None:
        messages = record.sent if is_answer else record.received
        fields = record.answer_fields if is_answer else record.fields
        body = unpacked(fields, b"".join(each.data for each in messages))
        if not body:
            return
        size = value_of(fields, JSON_SIZE)
        here: set[str] = set()
        is_v2 = record.path.startswith("/v2/")
        if is_answer and (value_of(fields, "Content-Type") or "").startswith("text/event-stream"):
            made = self._events(body, is_v2, here)
        elif _INFER.fullmatch(record.path):
            text, rest = _split(body, size)
            header, binary = self._tensors(read_object(text), rest, is_answer, here)
            made, size = header + binary, None if size is None else str(len(header))
        else:
            made = self._members(body, is_v2, here)
        if not here:
            return  # the bytes stay as they came
        found |= here
        messages[:] = [RecordedMessage(messages[0].at_ns, made)]
        head = record.answer_head if is_answer else record.head
        head = _with_field(_with_field(head, _ENCODING, None), "Content-Length", str(len(made)))
        if size is not None:
            head = _with_field(head, JSON_SIZE, size)
        if is_answer:
            record.answer_head = head
        else:
            record.head = head

    def _tensors(
        self, document: dict[str, Any], binary: bytes, is_answer: bool, found: set[str]
    ) -> tuple[bytes, bytes]:
        """Return the JSON of a request or a response, and the binary tensors behind it."""
        rows = document.get("outputs" if is_answer else "inputs", [])
        if not isinstance(rows, list) or not all(isinstance(each, dict) for each in rows):
            raise Unreadable("the tensors are no list of objects")
        # The columns of a data frame may become an input of another name.
        is_frame = _parameters(document).get("content_type") == "pd"
        parts = []
        for tensor in rows:
            size = _parameters(tensor).get("binary_data_size")
            if size is not None and (not isinstance(size, int) or not 0 <= size <= len(binary)):
                raise Unreadable("a binary tensor has a wrong size")
            own, binary = binary[: size or 0], binary[size or 0 :]
            name = str(tensor.get("name", ""))
            if is_frame or self._matches(name):
                found.add(name)
                if "data" in tensor:
                    tensor["data"] = blank(tensor["data"])
                own = _blank_raw(str(tensor.get("datatype", "")), own)
                if size is not None:
                    tensor["parameters"]["binary_data_size"] = len(own)
            parts.append(own)
        if binary:
            raise Unreadable(f"{len(binary)} bytes are of no tensor")
        return orjson.dumps(document), b"".join(parts)

    def _members(self, text: bytes, is_v2: bool, found: set[str]) -> bytes:
        document = read_object(text)
        self._json.redact(document, is_v2, found)
        return orjson.dumps(document)

    def _events(self, body: bytes, is_v2: bool, found: set[str]) -> bytes:
        lines = body.split(b"\n")
        for number, line in enumerate(lines):
            start, _, text = line.strip(b"\r").partition(b":")
            if start == b"data" and text.strip() not in (b"", b"[DONE]"):
                lines[number] = b"data: " + self._members(text, is_v2, found)
            elif start != b"data" and start not in _FIELDS_OF_EVENTS:
                raise Unreadable("a line of the events has no known field")
        return b"\n".join(lines)

    # gRPC ------------------------------------------------------------------------------

    def _redact_grpc(self, record: Record, is_answer: bool, found: set[str]) -> None:
        for each in record.sent if is_answer else record.received:
            each.data = redacted(record.path, each.data, is_answer, self._matches, found)


def _split(body: bytes, size: str | None) -> tuple[bytes, bytes]:
    if size is None:
        return body, b""
    if not size.isdecimal() or int(size) > len(body):
        raise Unreadable(f"{JSON_SIZE} is '{size}'")
    return body[: int(size)], body[int(size) :]


def _parameters(row: dict[str, Any]) -> dict[str, Any]:
    found = row.get("parameters") or {}
    if not isinstance(found, dict):
        raise Unreadable("'parameters' is no object")
    return found


def _blank_raw(datatype: str, raw: bytes) -> bytes:
    return pack([b""] * len(unpack(raw))) if datatype == "BYTES" else bytes(len(raw))


def _with_field(head: str, name: str, value: str | None) -> str:
    """Return a head with another value of a field, if the head has the field. None: without the field."""
    lines = head.split("\r\n")
    kept = []
    for line in lines:
        if line.partition(":")[0].lower() != name.lower():
            kept.append(line)
        elif value is not None:
            kept.append(f"{name}: {value}")
    return "\r\n".join(kept)
