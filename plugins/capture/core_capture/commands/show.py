"""core capture show: a line for each record, or one record in full."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

import orjson

from core.errors import invalid
from core_capture.records.reader import CaptureReader
from core_capture.records.record import Record
from core_capture.replay.report import title
from core_capture.tensors.forms import answers_of, requests_of
from core_capture.tensors.message import InferMessage, TensorValue, Unreadable

summary = "print a line for each request, or one request in full"

_MOST_ELEMENTS = 8  # of a tensor, in text
_MOST_TEXT = 2000  # bytes of a body without tensors


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--model", action="append", default=[], help="only requests for this model; repeatable")
    add("--limit", type=int, default=0, metavar="N", help="only the first N requests")
    add("--record", type=int, metavar="NUMBER", help="print this request in full")
    add("--json", action="store_true", help="print JSON: one object a line")


def run(reader: CaptureReader, namespace: argparse.Namespace) -> int:
    found = [
        (place, record)
        for place, record in reader.places()
        if not namespace.model or any(fnmatchcase(record.model, each) for each in namespace.model)
    ]
    if (number := namespace.record) is not None:
        if not 0 <= number < len(found):
            raise invalid(
                f"--record={number}: the capture has {len(found)} such requests, from 0 on"
            )
        print("\n".join(_in_full(reader.read(found[number][0]))))
        return 0
    rows = [record for _, record in found[: namespace.limit or None]]
    for number, record in enumerate(rows):
        print(
            orjson.dumps(_row(number, record)).decode() if namespace.json else _line(number, record)
        )
    if not namespace.json:
        print(_summary(reader, [record for _, record in found]))
    return 0


def _row(number: int, record: Record) -> dict[str, Any]:
    names = (
        "time_ns",
        "protocol",
        "method",
        "path",
        "model",
        "version",
        "client",
        "caller",
        "worker",
    )
    row = {name: getattr(record, name) for name in (*names, "status", "duration_ns", "cut")}
    return {"number": number, **row, "messages": len(record.received), "answers": len(record.sent)}


def _line(number: int, record: Record) -> str:
    end = f"{record.status:>3} {record.duration_ns / 1e6:>9.2f} ms"
    answers = f"{len(record.sent)} answers" if len(record.sent) != 1 else ""
    return f"#{number:<6} {title(record)}  {end}  {answers}{'  cut' * record.cut}".rstrip()


def _summary(reader: CaptureReader, records: list[Record]) -> str:
    if not records:
        return f"no requests in {_files(reader)}"
    seconds = (max(each.end_ns for each in records) - records[0].time_ns) / 1e9
    models = Counter(each.model or "(no model)" for each in records)
    named = ", ".join(f"{name} {count:,}" for name, count in models.most_common(5))
    more = f" and {len(models) - 5} more" if len(models) > 5 else ""
    failed = sum(each.failed for each in records)
    return (
        f"{len(records):,} requests in {seconds:,.1f} s, {failed:,} failed, in {_files(reader)}: "
        f"{named}{more}"
    )


def _files(reader: CaptureReader) -> str:
    return f"{len(reader.files)} file{'s' * (len(reader.files) != 1)}"


def _in_full(record: Record) -> Iterator[str]:
    yield f"{title(record)}  {record.status}  {record.duration_ns / 1e6:.3f} ms"
    client, caller = record.client or "on a Unix socket", record.caller or "-"
    yield f"client {client}  caller {caller}  worker {record.worker}"
    yield ""
    yield record.head.rstrip()
    yield ""
    yield from _content(lambda: requests_of(record), record.body)
    if not record.has_answer:
        yield "\n(the answer was not recorded)"
        return
    yield ""
    yield record.answer_head.rstrip()
    yield ""
    messages = [each.data for each in record.sent]
    yield from _content(
        lambda: answers_of(record.path, record.answer_fields, messages), record.answer
    )


def _content(decoded: Any, data: bytes) -> Iterator[str]:
    try:
        for message in decoded():
            yield from _message(message)
    except Unreadable:
        yield data[:_MOST_TEXT].decode("utf-8", "backslashreplace")
        if len(data) > _MOST_TEXT:
            yield f"… {len(data):,} bytes"


def _message(message: InferMessage) -> Iterator[str]:
    if message.id:
        yield f"id {message.id}"
    if message.parameters:
        yield f"parameters {message.parameters}"
    for tensor in message.tensors:
        yield _tensor(tensor)
    for name, parameters in message.wanted.items():
        yield f"wants {name} {parameters or ''}".rstrip()


def _tensor(tensor: TensorValue) -> str:
    shape = ",".join(map(str, tensor.shape))
    start = f"{tensor.name} {tensor.datatype}[{shape}]"
    if tensor.raw is None:
        return f"{start} in shared memory {tensor.parameters}"
    elements = tensor.array().ravel()[:_MOST_ELEMENTS].tolist()
    dots = ", …" if tensor.array().size > _MOST_ELEMENTS else ""
    return f"{start} {', '.join(map(str, elements))}{dots}"
