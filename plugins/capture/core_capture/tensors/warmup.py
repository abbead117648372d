"""WarmupSamples: recorded requests as model_warmup of a configuration, with their data in files."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from google.protobuf import text_format

from core.config import ModelConfig
from core.config.text import parse_text
from core.dtypes import BY_NAME
from core.errors import invalid
from core_capture.records.reader import CaptureReader
from core_capture.tensors.forms import requests_of
from core_capture.tensors.message import InferMessage, TensorValue, Unreadable, pack

PREFIX = "capture-"
"""Beginning of the names of samples and files."""

Key = tuple[tuple[str, str, tuple[int, ...]], ...]


@dataclass
class WarmupSamples:
    """One sample for each combination of datatypes and shapes.

    found      the samples
    files      name in the folder `warmup` → data
    requests   number of the requests that they stand for
    """

    found: list[ModelConfig] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    requests: int = 0

    @classmethod
    def of(
        cls, reader: CaptureReader, model: str, text: str, origin: str, most: int
    ) -> WarmupSamples:
        """Return samples of the requests for a model, the most frequent combination first.

        text, origin   of its config.pbtxt
        most           samples
        Raises CoreError(INVALID) without usable requests, and for a configuration that has such samples.
        """
        config = parse_text(text, origin)
        if any(each.name.startswith(PREFIX) for each in config.model_warmup):
            raise invalid(f"{origin} has samples of a capture already: remove those '{PREFIX}…'")
        counts: Counter[Key] = Counter()
        first: dict[Key, InferMessage] = {}
        for record in reader.records():
            if record.model != model or record.cut or record.redacted:
                continue
            try:
                for request in requests_of(record):
                    if _usable(request):
                        key = tuple((t.name, t.datatype, t.shape) for t in request.tensors)
                        counts[key] += 1
                        first.setdefault(key, request)
            except Unreadable:
                continue
        if not counts:
            raise invalid(f"the capture has no usable requests for model '{model}'")
        made = cls()
        for number, (key, count) in enumerate(counts.most_common(max(1, most))):
            made._add(f"{PREFIX}{number}", first[key], config.max_batch_size)
            made.requests += count
        return made

    def text(self) -> str:
        """Return the samples as text for config.pbtxt."""
        return "".join(text_format.MessageToString(each) for each in self.found)

    def _add(self, name: str, request: InferMessage, max_batch_size: int) -> None:
        config = ModelConfig()
        sample = config.model_warmup.add(name=name, batch_size=1)
        for position, tensor in enumerate(request.tensors):
            if tensor.datatype not in BY_NAME:
                raise invalid(f"input '{tensor.name}' has the unknown datatype {tensor.datatype}")
            shape, data = tensor.shape, tensor.raw or b""
            if max_batch_size and shape:
                # A sample has the data of one row, and the number of rows.
                sample.batch_size = max(1, min(shape[0], max_batch_size))
                shape, data = shape[1:], _first_row(tensor)
            file = f"{name}-{position}-{_file_name(tensor.name)}"
            self.files[file] = data
            given: Any = sample.inputs[tensor.name]
            given.data_type = BY_NAME[tensor.datatype].number
            given.dims.extend(shape)
            given.input_data_file = file
        self.found.append(config)


def _usable(request: InferMessage) -> bool:
    """Return whether a request has tensors, and all of them have elements in the record."""
    return bool(request.tensors) and all(
        each.raw is not None and 0 not in each.shape for each in request.tensors
    )


def _first_row(tensor: TensorValue) -> bytes:
    if tensor.datatype == "BYTES":
        return pack(list(tensor.array()[:1].ravel()))
    rows = max(1, tensor.shape[0])
    raw = tensor.raw or b""
    return raw[: len(raw) // rows]


def _file_name(name: str) -> str:
    """Return the name of a tensor with other characters than letters and digits replaced."""
    return "".join(each if each.isalnum() or each in "._-" else "_" for each in name)
