"""Input data of a JSON file in the format of perf_analyzer.

    {"data": [{"INPUT0": [1, 2], "INPUT1": {"content": [3], "shape": [1]}, "INPUT2": {"b64": "…"}}, …]}

A list within `data` is the steps of one sequence. Contents have no batch dimension.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from pathlib import Path
from typing import Any

from core.errors import invalid
from core_bench.data.shapes import check_dims, dims_of
from core_bench.data.tensors import Value, from_numbers, pack, size_error
from core_bench.model.description import ModelInfo, TensorInfo
from core_bench.plan import Side

Step = dict[str, Value]


def read_document(path: str) -> list[Any]:
    """Return `data` of a file. Raises CoreError if it cannot be read, or has another form."""
    try:
        document = json.loads(Path(path).read_bytes())
    except (OSError, ValueError) as error:
        raise invalid(f"cannot read the input data in '{path}': {error}") from None
    data = document.get("data") if isinstance(document, dict) else None
    if not isinstance(data, list) or not data:
        raise invalid(f"'{path}' needs a list 'data' with a request in it, as for perf_analyzer")
    if "validation_data" in document:
        raise invalid(
            f"'{path}' has 'validation_data', but core bench compares no outputs; remove it"
        )
    return data


def read_streams(path: str, info: ModelInfo, side: Side) -> list[list[Step]]:
    """Return the steps of each stream; the tensors have no batch dimension. Raises CoreError."""
    data = read_document(path)
    if all(isinstance(each, list) for each in data):
        streams = data
    elif any(isinstance(each, list) for each in data):
        raise invalid(f"'{path}' mixes requests and lists of requests in 'data'")
    else:
        streams = [data]
    return [
        [
            _step(each, info, side, f"'{path}', stream {i}, step {j}")
            for j, each in enumerate(stream)
        ]
        for i, stream in enumerate(streams)
        if stream
    ]


def _step(found: Any, info: ModelInfo, side: Side, where: str) -> Step:
    if not isinstance(found, dict):
        raise invalid(f"{where} is no object with inputs")
    known = {each.name: each for each in info.inputs}
    for name in found:
        if name not in known:
            names = ", ".join(known)
            raise invalid(
                f"{where} has an input '{name}' that the model does not have; it has: {names}"
            )
    step = {}
    for name, tensor in known.items():
        if name in found:
            step[name] = _value(found[name], tensor, side, f"input '{name}' of {where}")
        elif not tensor.optional:
            raise invalid(f"{where} has no input '{name}'")
    return step


def _value(found: Any, tensor: TensorInfo, side: Side, what: str) -> Value:
    if not isinstance(found, dict):
        found = {"content": found}
    if "shape" in found:
        shape = _shape(found["shape"], what)
        check_dims(tensor, shape, f"the shape {list(shape)} of {what}")
    else:
        shape = dims_of(tensor, side.shapes or {})
    if "b64" in found:
        raw = _decoded(found["b64"], tensor, what)
    elif found.get("content") is None:
        raise invalid(f"{what} needs a list of values, 'content', or 'b64'")
    else:
        raw = from_numbers(tensor.datatype, found["content"], what)
    if size := size_error(tensor.datatype, shape, raw):
        raise invalid(
            f"{what} has {size}, but shape {list(shape)} has {math.prod(shape)} of {tensor.datatype}"
        )
    return Value(tensor.datatype, shape, raw)


def _shape(found: Any, what: str) -> tuple[int, ...]:
    if not isinstance(found, list) or not all(type(each) is int and each >= 0 for each in found):
        raise invalid(f"{what} has 'shape' {found!r}; expected a list of whole numbers")
    return tuple(found)


def _decoded(text: Any, tensor: TensorInfo, what: str) -> bytes:
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise invalid(f"{what} has 'b64' that is no base64") from None
    return pack([raw]) if tensor.datatype == "BYTES" else raw
