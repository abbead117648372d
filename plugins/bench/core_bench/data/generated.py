"""Random and zero inputs."""

from __future__ import annotations

import math
import string

import numpy as np

from core_bench.data.tensors import Value, dtype_of, pack
from core_bench.model.description import TensorInfo
from core_bench.plan import Side

_LETTERS = np.frombuffer((string.ascii_letters + string.digits).encode(), np.uint8)


def random_value(
    tensor: TensorInfo, shape: tuple[int, ...], side: Side, random: np.random.Generator
) -> Value:
    """Return a tensor: floats in [0, 1), integers in 0 … 127, flags, strings of letters and digits."""
    count = math.prod(shape)
    if tensor.datatype == "BYTES":
        if side.string_data is not None:
            return Value("BYTES", shape, pack([side.string_data.encode()] * count))
        letters = random.choice(_LETTERS, (count, side.string_length))
        return Value("BYTES", shape, pack([each.tobytes() for each in letters]))
    dtype = dtype_of(tensor.datatype)
    if tensor.datatype == "BF16":
        made = (random.random(count, np.float32).view(np.uint32) >> 16).astype(np.uint16)
    elif dtype.kind == "f":
        made = random.random(count).astype(dtype)
    elif dtype.kind == "b":
        made = random.integers(0, 2, count).astype(dtype)
    else:
        made = random.integers(0, 128, count).astype(dtype)
    return Value(tensor.datatype, shape, made.tobytes())


def zero_value(tensor: TensorInfo, shape: tuple[int, ...], side: Side) -> Value:
    """Return a tensor of zeros; of empty strings, or of --string-data."""
    count = math.prod(shape)
    if tensor.datatype == "BYTES":
        return Value("BYTES", shape, pack([(side.string_data or "").encode()] * count))
    return Value(tensor.datatype, shape, bytes(count * dtype_of(tensor.datatype).itemsize))
