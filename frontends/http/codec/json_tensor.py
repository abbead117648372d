"""The `data` of a JSON tensor → Tensor.

Each number must be of its datatype and within its range; nothing is rounded to fit an integer.
"""

from __future__ import annotations

import math
import sys
from array import array
from itertools import chain
from typing import Any

import numpy as np

from core import dtypes
from core.dtypes import DataType
from core.errors import CoreError, invalid
from core.native import strings
from core.tensor import Buffer, Tensor
from frontends.http.codec.json_text import TOO_DEEP, Elements

LARGEST = 2**63 - 1  # of an element count or byte size, as in Triton
_MOST_DEPTH = 100

# array.array and not numpy: it rejects values out of range; older versions of numpy let them wrap.
_CODES = {
    dtypes.BOOL: "B",
    dtypes.UINT8: "B",
    dtypes.UINT16: "H",
    dtypes.UINT32: "I",
    dtypes.UINT64: "Q",
    dtypes.INT8: "b",
    dtypes.INT16: "h",
    dtypes.INT32: "i",
    dtypes.INT64: "q",
    dtypes.FP32: "f",
    dtypes.FP64: "d",
}
_FLOATS = (dtypes.FP32, dtypes.FP64)
_HALVES = (dtypes.FP16, dtypes.BF16)


def read_tensor(
    name: str, dtype: DataType, shape: tuple[int, ...], data: Any, most_bytes: int
) -> Tensor:
    """Return the tensor of a JSON input.

    data         flat or nested list in row-major order, or Elements; its nesting need not match the shape
    most_bytes   limit of the tensor's size
    Raises CoreError(INVALID) if the datatype or the shape does not allow the data. With 0 in the shape, the
    tensor is empty, and `data` is ignored. Nothing is allocated for a shape that claims more elements than
    `data` holds.
    """
    if dtype in _HALVES:
        raise invalid(
            f"receiving {dtype} data via JSON is not supported. Please use the binary data format "
            f"for input {name}"
        )
    count = element_count(name, shape)
    if count == 0:
        return Tensor(name, dtype, shape, raw=b"")
    _check_size(name, count * (dtype.byte_size or 4), most_bytes)
    if type(data) is Elements:
        return Tensor(name, dtype, shape, raw=_packed(name, dtype, shape, data, count, most_bytes))
    if type(data) is not list:
        raise _wrong(name, "attempt to access JSON non-array as array")
    flat, types = _flatten(data)
    _check_count(name, shape, len(flat), count)
    if dtype is dtypes.BYTES:
        _check_strings(name, types)
        raw = _pack_strings(flat)
        _check_size(name, len(raw), most_bytes)
    else:
        _check_numbers(name, dtype, types)
        raw = _pack_numbers(name, dtype, flat)
    return Tensor(name, dtype, shape, raw=raw)


def _packed(
    name: str,
    dtype: DataType,
    shape: tuple[int, ...],
    data: Elements,
    count: int,
    most_bytes: int,
) -> bytes:
    if data.is_too_deep:
        raise invalid(TOO_DEEP)
    _check_count(name, shape, data.count, count)
    if dtype is dtypes.BYTES:
        _check_strings(name, data.types)
        _check_size(name, 4 * count + data.text_bytes, most_bytes)
        return data.strings()
    _check_numbers(name, dtype, data.types)
    raw, outside = data.numbers(dtype, dtype.byte_size)
    if raw is None:
        raise _out_of_range(name, dtype, [outside])
    return raw


def _check_count(name: str, shape: tuple[int, ...], found: int, count: int) -> None:
    if found != count:
        raise _wrong(
            name,
            "Shape does not match true shape of 'data' field: it has "
            f"{found} elements, shape {list(shape)} takes {count}",
        )


def element_count(name: str, shape: tuple[int, ...]) -> int:
    """Return the number of elements of a shape. Raises CoreError(INVALID) if it exceeds LARGEST."""
    if 0 in shape:
        return 0
    count = 1
    for size in shape:
        count *= size
        if count > LARGEST:
            raise invalid(
                f"invalid shape for input '{name}': shape [{','.join(map(str, shape[:16]))}] causes "
                f"total element count to exceed maximum size of {LARGEST}"
            )
    return count


def filled(dims: tuple[int, ...], count: int) -> tuple[int, ...] | None:
    """Return the shape with `count` elements that fits `dims`, where -1 is any size; None if no shape does.

    The last dimension of -1 takes the size that `count` needs. Other dimensions of -1 become 1.
    """
    fixed = math.prod(dim for dim in dims if dim != -1)
    if fixed == 0 or count % fixed:
        return None
    shape = [1 if dim == -1 else dim for dim in dims]
    if -1 in dims:
        last = len(dims) - 1 - dims[::-1].index(-1)
        shape[last] = count // fixed
    elif count != fixed:
        return None
    return tuple(shape)


def _check_size(name: str, size: int, most: int) -> None:
    if size > most:
        raise invalid(
            f"JSON input '{name}' has a byte_size ({size} bytes) that exceeds the maximum allowed "
            f"value of {most} bytes. Use --http-max-input-size to increase the limit."
        )


def _flatten(data: list[Any]) -> tuple[list[Any], set[type]]:
    """Return the elements of a nested list in row-major order, and the set of their types.

    Raises CoreError(INVALID) for a list that is nested too deep.
    """
    for _ in range(_MOST_DEPTH):
        types = set(map(type, data))
        if list not in types:
            return data, types
        if len(types) == 1:
            data = list(chain.from_iterable(data))
        else:
            data = list(chain.from_iterable(x if type(x) is list else (x,) for x in data))
    raise invalid(TOO_DEEP)


def _check_numbers(name: str, dtype: DataType, types: set[type]) -> None:
    allowed: tuple[set[type], str]
    if dtype is dtypes.BOOL:
        allowed = {bool}, "non-boolean as boolean"
    elif dtype in _FLOATS:
        allowed = {float, int}, "non-number as double"
    elif dtype.name[0] == "U":
        allowed = {int}, "non-unsigned-integer as unsigned-integer"
    else:
        allowed = {int}, "non-signed-integer as signed-integer"
    if not types <= allowed[0]:
        raise _wrong(name, f"attempt to access JSON {allowed[1]}")


def _check_strings(name: str, types: set[type]) -> None:
    if types != {str}:
        raise invalid(
            "Unable to parse JSON bytes array: attempt to access JSON non-string as string "
            f"(input '{name}')"
        )


def _pack_numbers(name: str, dtype: DataType, flat: list[Any]) -> Buffer:
    try:
        packed = array(_CODES[dtype], flat)
    except OverflowError:
        raise _out_of_range(name, dtype, flat) from None
    if dtype is dtypes.FP32:
        _check_overflow(name, packed, flat)
    if sys.byteorder == "big":
        packed.byteswap()
    return memoryview(packed).cast("B")


def _check_overflow(name: str, packed: array[Any], flat: list[Any]) -> None:
    """Raise CoreError(INVALID) if a finite number overflowed to an infinity in FP32."""
    singles = np.frombuffer(packed, np.float32)
    if not np.isinf(singles).any():
        return
    came = np.isinf(np.array(flat, np.float64))
    if not np.array_equal(np.isinf(singles), came):
        raise _out_of_range(name, dtypes.FP32, flat)


def _out_of_range(name: str, dtype: DataType, flat: list[Any]) -> CoreError:
    if dtype in _FLOATS:
        limits = np.finfo(dtype.numpy)
        least, most = float(limits.min), float(limits.max)
    else:
        bounds = np.iinfo(dtype.numpy)
        least, most = bounds.min, bounds.max
    finite = (x for x in flat if abs(x) != float("inf"))
    found = next((x for x in finite if not least <= x <= most), "a value")
    return _wrong(name, f"{str(found)[:40]} is out of the range of {dtype} [{least}, {most}]")


def _pack_strings(flat: list[Any]) -> bytes:
    # An object array: numpy's own text would lose NULs at the end.
    elements = np.empty(len(flat), object)
    elements[:] = flat
    return strings.encode(elements)


def _wrong(name: str, reason: str) -> CoreError:
    return invalid(f"Unable to parse 'data': {reason} (input '{name}')")
