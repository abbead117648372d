"""TensorProto ↔ tensors.

Requests may have the values of a tensor as bytes or one by one; fewer values than elements repeat the last
one, as TensorFlow has it. Responses have them one by one, as TensorFlow Serving writes them. Both are read
and written as PackedTensor: protobuf makes no object of each number.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from core import dtypes
from core.dtypes import DataType
from core.errors import invalid, unsupported
from core.tensor import Tensor
from frontend_tfserving.rpc import messages, varints
from frontend_tfserving.types import BY_NUMBER, NUMBERS

MOST_REPEATED_BYTES = 64 * 2**20
"""Largest tensor that fewer values than elements may fill. Each text counts, as in the bytes of a tensor."""

MOST_DIMENSIONS = 32

# Of the integers in each field; other fields have the bytes of their numbers.
_INTEGERS: dict[str, np.dtype[Any]] = {
    "int_val": np.dtype(np.int32),
    "int64_val": np.dtype(np.int64),
    "bool_val": np.dtype(np.bool_),
    "half_val": np.dtype(np.int32),
    "uint32_val": np.dtype(np.uint32),
    "uint64_val": np.dtype(np.uint64),
}


def made_bytes(proto: messages.PackedTensor) -> int:
    """Return the most bytes that `tensor_of` makes for an input; 0 for bytes that it takes as they are."""
    dims = proto.tensor_shape.dim
    if proto.tensor_content or proto.dtype not in BY_NUMBER or len(dims) > MOST_DIMENSIONS:
        return 0
    dtype, found = BY_NUMBER[proto.dtype]
    sent = getattr(proto, found.field)
    values = len(sent) if dtype is dtypes.BYTES else sum(map(len, sent))
    most = max(MOST_REPEATED_BYTES, 8 * values)
    count = math.prod(max(0, int(dim.size)) for dim in dims)
    return min(most, count * _element_bytes(dtype, sent, count))


def tensor_of(name: str, proto: messages.PackedTensor) -> Tensor:
    """Return the tensor of an input, whose numbers are packed. Thread-safe.

    Raises CoreError(INVALID), which names the input, for a wrong one, and CoreError(UNSUPPORTED) for a
    datatype that the server does not have.
    """
    if proto.dtype not in BY_NUMBER:
        known = ", ".join(found.name for found in NUMBERS.values())
        raise unsupported(
            f"input '{name}' has the datatype {proto.dtype} of TensorFlow; known are {known}"
        )
    dtype, found = BY_NUMBER[proto.dtype]
    dims = proto.tensor_shape.dim
    if len(dims) > MOST_DIMENSIONS:
        raise invalid(
            f"input '{name}' has {len(dims)} dimensions; at most {MOST_DIMENSIONS} are accepted"
        )
    shape = tuple(dim.size for dim in dims)
    if proto.tensor_shape.unknown_rank or any(size < 0 for size in shape):
        raise invalid(f"input '{name}' has an unknown shape; a tensor needs its sizes")
    count = math.prod(shape)
    if proto.tensor_content:
        return _of_content(name, dtype, shape, count, proto.tensor_content)
    values = _values(name, dtype, found.field, getattr(proto, found.field))
    if len(values) > count:
        raise invalid(
            f"input '{name}' has {len(values)} values in {found.field}, its shape {list(shape)} has {count}"
        )
    if len(values) < count and count * _element_bytes(dtype, values, count) > MOST_REPEATED_BYTES:
        raise invalid(
            f"input '{name}' of shape {list(shape)} has {len(values)} values in {found.field}; so large a "
            "tensor needs all of them"
        )
    try:
        array = _filled(dtype, values, count).reshape(shape)
    except ValueError:  # numpy cannot index such a shape
        raise invalid(f"input '{name}' has a shape that is too large: {list(shape)}") from None
    return Tensor(name, dtype, shape, array=array)


def _element_bytes(dtype: DataType, values: Any, count: int) -> int:
    """Return the bytes of each of `count` elements. Texts that are all sent are those of the request.

    A text that is repeated has its length and its characters again in the tensor's bytes.
    """
    if dtype is dtypes.BYTES:
        return max(8, 4 + len(values[-1])) if 0 < len(values) < count else 8
    return dtype.byte_size or 8


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


def _values(name: str, dtype: DataType, field: str, packed: Any) -> Any:
    """Return the values of an input, of its datatype."""
    if dtype is dtypes.BYTES:
        texts = np.empty(len(packed), object)
        texts[:] = list(packed)
        return texts
    sent = packed[0] if len(packed) == 1 else b"".join(packed)
    try:
        if field not in _INTEGERS:
            return np.frombuffer(sent, dtype.numpy)
        found = varints.decode(sent, _INTEGERS[field])
    except ValueError:
        raise invalid(
            f"input '{name}' has {len(sent)} bytes in {field}, which are no numbers of {dtype.name}"
        ) from None
    if dtype.numpy.itemsize >= found.itemsize:
        return found
    # Half values are bit patterns; the narrow integers come as wider ones.
    narrow = np.dtype(np.uint16) if field == "half_val" else dtype.numpy
    limits = np.iinfo(narrow)
    if found.size and (found.min() < limits.min or found.max() > limits.max):
        raise invalid(f"input '{name}' has a value outside of the range of {dtype.name}")
    return found.astype(narrow).view(dtype.numpy)


def _filled(dtype: DataType, values: Any, count: int) -> Any:
    """Return the values, of which the last one is repeated up to `count`."""
    if len(values) == count:
        return values
    none = b"" if dtype is dtypes.BYTES else 0
    # np.full would take NULs at the end of a text for padding.
    found = np.empty(count, dtype.numpy)
    found[: len(values)] = values
    found[len(values) :] = values[-1] if len(values) else none
    return found


def proto_of(tensor: Tensor) -> messages.PackedTensor:
    """Return the message of an output. Thread-safe."""
    found = NUMBERS[tensor.dtype]
    array = tensor.array.ravel()
    proto = messages.PackedTensor(dtype=found.number)
    for size in tensor.shape:
        proto.tensor_shape.dim.add(size=size)
    field = getattr(proto, found.field)
    if tensor.dtype is dtypes.BYTES:
        field.extend(array.tolist())
    elif array.size:
        field.append(_encoded(tensor.dtype, array))
    return proto


def _encoded(dtype: DataType, array: Any) -> bytes:
    if dtype in (dtypes.FP32, dtypes.FP64, dtypes.BOOL):  # a bool is a varint of one byte
        return np.ascontiguousarray(array, dtype.numpy).tobytes()
    return varints.encode(array.view(np.uint16) if dtype is dtypes.FP16 else array)
