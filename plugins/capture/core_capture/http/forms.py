"""Records as values for JSON: a row for each, and one in full."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from core_capture.records.reader import Place
from core_capture.records.record import Record
from core_capture.tensors.forms import answers_of, requests_of
from core_capture.tensors.message import InferMessage, TensorValue, Unreadable

_MOST_ELEMENTS = 64  # of a tensor
_MOST_TEXT = 16 << 10  # bytes of a body without tensors
_MOST_MESSAGES = 100  # of a stream
_PLAIN = ("protocol", "method", "path", "model", "version", "client", "caller", "status")


def id_of(place: Place) -> str:
    """Return the name of a record in the paths of routes."""
    return f"{place.path.name}:{place.at}"


def row(place: Place, record: Record) -> dict[str, Any]:
    """Return what a list shows of a record; its messages may be empty."""
    return {
        "id": id_of(place),
        "at_ms": record.time_ns // 1_000_000,
        **{name: getattr(record, name) for name in _PLAIN},
        "duration_ns": record.duration_ns,
        "failed": record.failed,
        "has_answer": record.has_answer,
    }


def in_full(place: Place, record: Record) -> dict[str, Any]:
    """Return a record with its heads and messages. `answer` is None if it was not recorded."""
    answer = None
    if record.has_answer:
        sent = [each.data for each in record.sent]
        answer = _content(
            lambda: answers_of(record.path, record.answer_fields, sent), record.answer
        )
    return {
        **row(place, record),
        "cut": record.cut,
        "redacted": list(record.redacted),
        "head": record.head.rstrip(),
        "answer_head": record.answer_head.rstrip(),
        "request": _content(lambda: requests_of(record), record.body),
        "answer": answer,
    }


def _content(decoded: Callable[[], Sequence[InferMessage]], data: bytes) -> dict[str, Any]:
    """Return the tensors of each message, or the text of a body without tensors."""
    try:
        messages = decoded()
        shown = [
            {"id": each.id, "tensors": [_tensor(tensor) for tensor in each.tensors]}
            for each in messages[:_MOST_MESSAGES]
        ]
        return {"bytes": len(data), "messages": shown, "count": len(messages)}
    except Unreadable:
        text = data[:_MOST_TEXT].decode("utf-8", "backslashreplace")
        return {"bytes": len(data), "text": text, "cut": len(data) > _MOST_TEXT}


def _tensor(tensor: TensorValue) -> dict[str, Any]:
    """Return a tensor with its first elements as texts: JSON has no NaN."""
    found: dict[str, Any] = {
        "name": tensor.name,
        "datatype": tensor.datatype,
        "shape": list(tensor.shape),
    }
    if tensor.raw is None:
        return {**found, "elsewhere": True, "values": [], "count": 0}
    elements = tensor.array().ravel()
    return {
        **found,
        "elsewhere": False,
        "values": [_text(each) for each in elements[:_MOST_ELEMENTS].tolist()],
        "count": int(elements.size),
    }


def _text(element: Any) -> str:
    if isinstance(element, bytes):
        return element[:256].decode("utf-8", "backslashreplace")
    return f"{element:.7g}" if isinstance(element, float) else str(element)
