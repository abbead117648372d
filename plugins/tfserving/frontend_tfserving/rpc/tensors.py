"""TensorProto ↔ tensors.

Requests may have the values of a tensor as bytes or one by one; fewer values than elements repeat the last
one, as TensorFlow has it. Responses have them one by one, as TensorFlow Serving writes them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from core import dtypes
from core.dtypes import DataType
from core.errors import invalid, unsupported
from core.tensor import Tensor
from frontend_tfserving.rpc import messages
from frontend_tfserving.types import BY_NUMBER, NUMBERS

MOST_REPEATED_BYTES = 64 * 2**20
"""Largest tensor that fewer values than elements may fill."""


def tensor_of(name: str, proto: messages.TensorProto) -> Tensor:
    """Return the tensor of an input. Raises CoreError(INVALID), which names the input, for a wrong one, and
    CoreError(UNSUPPORTED) for a datatype that the server does not have.
    """
    if proto.dtype not in BY_NUMBER:
        known = ", ".join(found.name for found in NUMBERS.values())
        raise unsupported(
            f"input '{name}' has the datatype {proto.dtype} of TensorFlow; known are {known}"
        )
    dtype, found = BY_NUMBER[proto.dtype]
    shape = tuple(dim.size for dim in proto.tensor_shape.dim)
    if proto.tensor_shape.unknown_rank or any(size < 0 for size in shape):
        raise invalid(f"input '{name}' has an unknown shape; a tensor needs its sizes")
    if len(shape) > 32:
        raise invalid(f"input '{name}' has {len(shape)} dimensions; at most 32 are accepted")
    count = math.prod(shape)
    if proto.tensor_content:
        return _of_content(name, dtype, shape, count, proto.tensor_content)
    values = getattr(proto, found.field)
    if len(values) > count:
        raise invalid(
            f"input '{name}' has {len(values)} values in {found.field}, its shape {list(shape)} has {count}"
        )
    if len(values) < count and count * (dtype.byte_size or 8) > MOST_REPEATED_BYTES:
        raise invalid(
            f"input '{name}' of shape {list(shape)} has {len(values)} values in {found.field}; so large a "
            "tensor needs all of them"
        )
    try:
        array = _filled(name, dtype, values, count).reshape(shape)
    except ValueError:  # numpy cannot index such a shape
        raise invalid(f"input '{name}' has a shape that is too large: {list(shape)}") from None
    return Tensor(name, dtype, shape, array=array)


def _of_content(
    name: str, dtype: DataType, shape: tuple[int, ...], count: int, content: bytes
) -> Tensor:
    if dtype is dtypes.BYTES:
        raise invalid(f"input '{name}' has strings in tensor_content; send them in string_val")
    if len(content) != count * dtype.byte_size:
        raise invalid(
            f"input '{name}' has {len(content)} bytes in tensor_content, its shape {list(shape)} of "
            f"{dtype.name} has {count * dtype.byte_size}"
        )
    return Tensor(name, dtype, shape, raw=content)


def _filled(name: str, dtype: DataType, values: Any, count: int) -> Any:
    if dtype is dtypes.BYTES:
        texts = np.empty(count, object)
        texts[: len(values)] = list(values)
        texts[len(values) :] = values[-1] if values else b""
        return texts
    # Half values are bit patterns; the narrow integers come as wider ones.
    wide = np.uint16 if dtype is dtypes.FP16 else dtype.numpy
    try:
        found = np.array(values, np.int64 if dtype.numpy.itemsize < 4 else wide)
        if dtype.numpy.itemsize < 4 and dtype is not dtypes.BOOL:
            limits = np.iinfo(wide)
            if found.size and (found.min() < limits.min or found.max() > limits.max):
                raise OverflowError
        found = found.astype(wide)
    except OverflowError:
        raise invalid(f"input '{name}' has a value outside of the range of {dtype.name}") from None
    if len(found) < count:
        last = found[-1] if len(found) else 0
        found = np.concatenate([found, np.full(count - len(found), last, wide)])
    return found.view(dtype.numpy) if dtype is dtypes.FP16 else found


def proto_of(tensor: Tensor) -> messages.TensorProto:
    """Return the TensorProto of an output."""
    found = NUMBERS[tensor.dtype]
    array = tensor.array.ravel()
    if tensor.dtype is dtypes.FP16:
        array = array.view(np.uint16)
    proto = messages.TensorProto(dtype=found.number)
    for size in tensor.shape:
        proto.tensor_shape.dim.add(size=size)
    getattr(proto, found.field).extend(array.tolist())
    return proto
