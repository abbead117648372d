"""Samples: the inputs of all different requests, and in which order they are sent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from core.errors import invalid
from core_bench.data.folder import read_folder
from core_bench.data.generated import random_value, zero_value
from core_bench.data.json_file import Step, read_streams
from core_bench.data.readers import read_other
from core_bench.data.shapes import check_names, dims_of
from core_bench.data.tensors import Value, dtype_of
from core_bench.model.description import ModelInfo
from core_bench.plan import Side

_MOST_BYTES = 64 * 2**20  # of random requests together


@dataclass(frozen=True)
class Samples:
    """Requests, and streams of their indices; without sequences, the streams are sent one after the other.

    from_file   whether lengths of sequences are those of the streams, unless a flag says more
    """

    requests: Sequence[Step]
    streams: Sequence[Sequence[int]]
    from_file: bool = False

    def rows(self) -> float:
        """Return the average first dimension of the requests: their rows, for models with batches."""
        counts = [next(iter(each.values())).shape[0] for each in self.requests if each]
        return sum(counts) / len(counts) if counts else 1.0


def samples_of(info: ModelInfo, side: Side) -> Samples:
    """Return the samples that a side asks for. Raises CoreError if they do not fit the model."""
    info.check_batch(side.batch)
    check_names(side.shapes or {}, info)
    if side.input_data in (("random",), ("zero",)):
        if side.recorded_rows:
            raise invalid("--recorded-rows needs recorded traffic: --input-data CAPTURE")
        return _generated(info, side)
    streams: list[list[Step]] = []
    for path in side.input_data:
        if (other := read_other(path, info, side.recorded_rows)) is not None:
            streams += other
        elif side.recorded_rows:
            raise invalid(f"'{path}' is no recorded traffic; leave out --recorded-rows")
        elif Path(path).is_dir():
            streams.append([read_folder(path, info, side)])
        else:
            streams += read_streams(path, info, side)
    return _numbered(streams, info, side)


def _generated(info: ModelInfo, side: Side) -> Samples:
    batch = (side.batch,) if info.max_batch_size else ()
    inputs = [each for each in info.inputs if not each.optional or each.name in (side.shapes or {})]
    shapes = {each.name: batch + dims_of(each, side.shapes or {}) for each in inputs}
    if side.input_data == ("zero",):
        zeros = {each.name: zero_value(each, shapes[each.name], side) for each in inputs}
        return Samples([zeros], [[0]])
    random = np.random.default_rng(side.seed)
    size = sum(
        math.prod(shapes[each.name])
        * (side.string_length if each.datatype == "BYTES" else dtype_of(each.datatype).itemsize)
        for each in inputs
    )
    count = max(1, min(side.different, _MOST_BYTES // max(size, 1)))
    made = [
        {each.name: random_value(each, shapes[each.name], side, random) for each in inputs}
        for _ in range(count)
    ]
    return Samples(made, [list(range(count))])


def _numbered(streams: list[list[Step]], info: ModelInfo, side: Side) -> Samples:
    requests: list[Step] = []
    numbers = []
    for stream in streams:
        numbers.append(list(range(len(requests), len(requests) + len(stream))))
        for at in range(len(stream)):
            rows = [stream[(at + i) % len(stream)] for i in range(side.batch)]
            if not info.max_batch_size or side.recorded_rows:
                requests.append(stream[at])
            elif info.sequences:
                requests.append(_stacked([stream[at]] * side.batch))
            else:
                requests.append(_stacked(rows))
    return Samples(requests, numbers, from_file=True)


def _stacked(rows: Sequence[Step]) -> Step:
    """Return one batch of steps. Raises CoreError if their shapes differ."""
    stacked = {}
    for name, first in rows[0].items():
        values = [row[name] for row in rows if name in row]
        if len(values) != len(rows) or any(each.shape != first.shape for each in values):
            raise invalid(
                f"input '{name}' has several shapes in the input data, which no batch can have"
            )
        raw = b"".join(each.raw for each in values)
        stacked[name] = Value(first.datatype, (len(rows), *first.shape), raw)
    return stacked
