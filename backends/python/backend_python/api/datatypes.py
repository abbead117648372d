"""The datatypes as numbers (Triton's TRITONSERVER_DataType), and their numpy types."""

from __future__ import annotations

from typing import Any

import numpy as np

BOOL, UINT8, UINT16, UINT32, UINT64 = 1, 2, 3, 4, 5
INT8, INT16, INT32, INT64 = 6, 7, 8, 9
FP16, FP32, FP64, BYTES, BF16 = 10, 11, 12, 13, 14

# BF16 as its bit patterns: numpy has no such type.
NUMPY: dict[int, np.dtype[Any]] = {
    BOOL: np.dtype("?"),
    UINT8: np.dtype("u1"),
    UINT16: np.dtype("<u2"),
    UINT32: np.dtype("<u4"),
    UINT64: np.dtype("<u8"),
    INT8: np.dtype("i1"),
    INT16: np.dtype("<i2"),
    INT32: np.dtype("<i4"),
    INT64: np.dtype("<i8"),
    FP16: np.dtype("<f2"),
    FP32: np.dtype("<f4"),
    FP64: np.dtype("<f8"),
    BYTES: np.dtype(object),
    BF16: np.dtype("<u2"),
}
ITEM_SIZE: dict[int, int] = {
    number: 0 if number == BYTES else dtype.itemsize for number, dtype in NUMPY.items()
}
NUMBERS = {dtype: number for number, dtype in NUMPY.items() if number != BF16}

TRITON_STRING_TO_NUMPY: dict[str, type] = {
    "TYPE_BOOL": bool,
    "TYPE_UINT8": np.uint8,
    "TYPE_UINT16": np.uint16,
    "TYPE_UINT32": np.uint32,
    "TYPE_UINT64": np.uint64,
    "TYPE_INT8": np.int8,
    "TYPE_INT16": np.int16,
    "TYPE_INT32": np.int32,
    "TYPE_INT64": np.int64,
    "TYPE_FP16": np.float16,
    "TYPE_FP32": np.float32,
    "TYPE_FP64": np.float64,
    "TYPE_STRING": np.object_,
}


def number_of(dtype: np.dtype[Any]) -> int:
    """Return the datatype of a numpy dtype in native byte order; 0 if there is none.

    Bytes of fixed width (`S`) are BYTES; text of fixed width (`U`) has no datatype, as in Triton.
    """
    if (number := NUMBERS.get(dtype)) is not None:
        return number
    if dtype.kind == "S":
        return BYTES
    return BF16 if dtype.name == "bfloat16" else 0


def array_of(buffer: Any, start: int, number: int, shape: tuple[int, ...]) -> Any:
    """Return an array that shares a buffer's bytes from `start` on. BF16 as uint16; not for BYTES."""
    return np.ndarray(shape, NUMPY[number], buffer, start)


def plain_number(array: Any) -> int:
    """Return the datatype of an array that needs no conversion: in C order, dtype in NUMBERS. Else 0."""
    if type(array) is not np.ndarray or not array.flags.c_contiguous:
        return 0
    return NUMBERS.get(array.dtype, 0)


def triton_to_numpy_type(data_type: int) -> type | None:
    """Return the numpy scalar type of a datatype's number; None for BF16 and unknown numbers."""
    dtype = NUMPY.get(data_type)
    return None if dtype is None or data_type == BF16 else dtype.type


def numpy_to_triton_type(data_type: Any) -> int | None:
    """Return the datatype of a numpy scalar type or dtype (`np.float32`); None if it has none."""
    if data_type is np.bytes_:
        return BYTES
    for number, dtype in NUMPY.items():
        if data_type == dtype.type:
            return number
    return None


def triton_string_to_numpy(triton_type_string: str) -> type:
    """Return the numpy type of a name in config.pbtxt, such as TYPE_FP32. Raises KeyError for TYPE_BF16."""
    return TRITON_STRING_TO_NUMPY[triton_type_string]
