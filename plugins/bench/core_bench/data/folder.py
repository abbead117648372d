"""Input data of a folder: a file for each input, with its name. BYTES have a line for each element."""

from __future__ import annotations

import math
from pathlib import Path

from core.errors import invalid
from core_bench.data.shapes import dims_of
from core_bench.data.tensors import Value, pack, size_error
from core_bench.model.description import ModelInfo
from core_bench.plan import Side


def read_folder(path: str, info: ModelInfo, side: Side) -> dict[str, Value]:
    """Return the tensors without the batch dimension. Raises CoreError for files that do not fit."""
    found = {}
    for tensor in info.inputs:
        file = Path(path, tensor.name)
        if not file.is_file():
            if tensor.optional:
                continue
            raise invalid(
                f"the folder '{path}' has no file '{tensor.name}' for the input of that name"
            )
        dims = dims_of(tensor, side.shapes or {})
        data = file.read_bytes()
        if tensor.datatype == "BYTES":
            data = pack(data.splitlines())
        if size := size_error(tensor.datatype, dims, data):
            raise invalid(
                f"'{file}' has {size}, but input '{tensor.name}' has {math.prod(dims)} of {tensor.datatype}"
            )
        found[tensor.name] = Value(tensor.datatype, dims, data)
    return found
