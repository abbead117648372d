"""InputData: the requests for one model, as the input data of a load generator.

perf_analyzer's JSON has a list of steps, each {input: {"content": [...], "shape": [...]}}; the steps of a
sequence are a list of their own. Shapes have no batch dimension.
"""

from __future__ import annotations

import base64
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from core.errors import invalid
from core_capture.records.reader import SUFFIX, CaptureReader
from core_capture.tensors.forms import requests_of
from core_capture.tensors.message import InferMessage, TensorValue, Unreadable, pack

Step = dict[str, TensorValue]


@dataclass
class InputData:
    """Steps, and which of them are sequences.

    streams   lists of steps: one for all requests without a sequence, and one for each sequence
    skipped   reason → number of requests that have no step
    """

    model: str = ""
    streams: dict[str, list[Step]] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls, reader: CaptureReader, model: str, *, rows: bool = False, limit: int = 0
    ) -> InputData:
        """Return the requests for a model.

        Raises CoreError(INVALID) if there are none, and for several models without a name.

        rows    make a step of each row: the first dimension of the shapes is that of batches
        limit   most requests; 0 for all
        """
        found = cls(model)
        count = 0
        places = reader.places()
        if not model:
            models = sorted({record.model for _, record in places if record.model})
            if len(models) > 1:
                raise invalid(
                    f"the capture has several models: choose one of {', '.join(models)} with --model"
                )
            found.model = models[0] if models else ""
        for place, known in places:
            if known.model != found.model or (limit and count >= limit):
                continue
            record = reader.read(place)
            try:
                if record.cut:
                    raise Unreadable("too many bytes were sent, and not recorded")
                if record.redacted:
                    raise Unreadable("tensors were redacted")
                for request in requests_of(record):
                    if request.model in ("", found.model):
                        found._add(request, rows)
                        count += 1
            except Unreadable as error:
                reason = str(error)
                found.skipped[reason] = found.skipped.get(reason, 0) + 1
        if not found.streams:
            why = "".join(f"; {count}: {reason}" for reason, count in found.skipped.items())
            raise invalid(f"the capture has no usable requests for model '{found.model}'{why}")
        return found

    def document(self) -> list[Any]:
        """Return the value of `data` in perf_analyzer's JSON."""
        streams = [[_plain(step) for step in stream] for stream in self.streams.values()]
        return streams if len(streams) > 1 or "" not in self.streams else streams[0]

    def summary(self) -> str:
        steps = sum(map(len, self.streams.values()))
        sequences = len(self.streams.keys() - {""})
        text = f"{steps:,} steps of model '{self.model}'"
        if sequences:
            text += f", {sequences:,} sequences"
        for reason, count in self.skipped.items():
            text += f"\n{count:,} requests are left out: {reason}"
        return text

    def _add(self, request: InferMessage, rows: bool) -> None:
        for each in request.tensors:
            each.array()  # raises Unreadable if its data are not there, or have another size
        sequence = str(request.parameters.get("sequence_id", "") or "")
        stream = self.streams.setdefault("" if sequence == "0" else sequence, [])
        stream += _rows(request) if rows else [{each.name: each for each in request.tensors}]


def read_for_bench(
    path: str, model: str, rows: bool
) -> list[list[dict[str, tuple[str, tuple[int, ...], bytes]]]] | None:
    """Return the steps for core bench, as core.bench_data wants them; None for a path without a capture."""
    if not is_capture(path):
        return None
    data = InputData.of(CaptureReader(path), model, rows=rows)
    return [
        [{name: (t.datatype, t.shape, t.raw or b"") for name, t in step.items()} for step in stream]
        for stream in data.streams.values()
    ]


def intervals_for_bench(path: str, model: str) -> list[int] | None:
    """Return the nanoseconds between the requests for a model, as core.bench_arrivals wants them.

    None for a path without a capture. Raises CoreError if it has fewer than two requests for the model.
    """
    if not is_capture(path):
        return None
    times: list[int] = []
    for _, record in CaptureReader(path).places():
        if record.model == model and record.protocol == "grpc":  # a stream has several requests
            times += [record.time_ns + each.at_ns for each in record.received]
        elif record.model == model:
            times.append(record.time_ns)
    times.sort()
    if len(times) < 2 or times[0] == times[-1]:
        raise invalid(
            f"'{path}' has {len(times)} requests for model '{model}': too few for a pattern"
        )
    return [after - before for before, after in itertools.pairwise(times)]


def is_capture(path: str) -> bool:
    """Return whether a path is a folder with files of a capture, or one of them."""
    folder = Path(path)
    return folder.suffix == SUFFIX or (folder.is_dir() and any(folder.glob(f"*{SUFFIX}")))


def _rows(request: InferMessage) -> Iterator[Step]:
    counts = {each.shape[0] if each.shape else 0 for each in request.tensors}
    if len(counts) != 1 or 0 in counts:
        raise Unreadable("the first dimensions of the inputs are no equal number of rows")
    arrays = {each.name: (each, each.array()) for each in request.tensors}
    for number in range(counts.pop()):
        yield {
            name: TensorValue(name, each.datatype, each.shape[1:], _raw_row(each, array, number))
            for name, (each, array) in arrays.items()
        }


def _raw_row(tensor: TensorValue, array: np.ndarray[Any, Any], number: int) -> bytes:
    raw = tensor.raw
    assert raw is not None  # array() has raised otherwise
    if tensor.datatype == "BYTES":
        return pack(list(array[number].ravel()))
    size = len(raw) // len(array)
    return raw[number * size : (number + 1) * size]


def _plain(step: Step) -> dict[str, Any]:
    return {name: _value(tensor) for name, tensor in step.items()}


def _value(tensor: TensorValue) -> dict[str, Any]:
    """Return a tensor as perf_analyzer reads it. Numbers that JSON cannot hold exactly are base64."""
    array = tensor.array()
    shape = list(tensor.shape) or [1]
    if tensor.datatype == "BYTES":
        try:
            return {"content": [each.decode() for each in array.ravel()], "shape": shape}
        except UnicodeDecodeError:
            raise Unreadable(f"input '{tensor.name}' has strings that are no UTF-8") from None
    if array.dtype.kind == "f":
        raw = tensor.raw or b""
        return {"b64": base64.b64encode(raw).decode(), "shape": shape}
    return {"content": array.ravel().tolist(), "shape": shape}
