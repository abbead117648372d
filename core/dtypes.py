"""The v2 datatypes: their three names, their size and their numpy form.

Protocol names (`FP32`) come from the KServe v2 specification, `TYPE_*` names and numbers from
`DataType` in Triton's model_config.proto.
"""

from __future__ import annotations

import numpy as np


class DataType:
    """A datatype of the protocol. There is one object for each; compare by identity.

    name         in the protocol: "FP32", "BYTES"
    config_name  in config.pbtxt: "TYPE_FP32", "TYPE_STRING"
    number       of the enum in model_config.proto
    byte_size    of one element on the wire; 0 for BYTES, whose elements vary
    numpy        little endian; BF16 as uint16 bit patterns, BYTES as objects of type bytes
    """

    def __init__(self, name: str, config_name: str, number: int, byte_size: int, numpy: np.dtype):
        self.name = name
        self.config_name = config_name
        self.number = number
        self.byte_size = byte_size
        self.numpy = numpy

    def __repr__(self) -> str:
        return self.name


def _fixed(name: str, number: int, code: str) -> DataType:
    numpy = np.dtype(code)
    return DataType(name, f"TYPE_{name}", number, numpy.itemsize, numpy)


BOOL = _fixed("BOOL", 1, "?")
UINT8 = _fixed("UINT8", 2, "u1")
UINT16 = _fixed("UINT16", 3, "<u2")
UINT32 = _fixed("UINT32", 4, "<u4")
UINT64 = _fixed("UINT64", 5, "<u8")
INT8 = _fixed("INT8", 6, "i1")
INT16 = _fixed("INT16", 7, "<i2")
INT32 = _fixed("INT32", 8, "<i4")
INT64 = _fixed("INT64", 9, "<i8")
FP16 = _fixed("FP16", 10, "<f2")
FP32 = _fixed("FP32", 11, "<f4")
FP64 = _fixed("FP64", 12, "<f8")
BYTES = DataType("BYTES", "TYPE_STRING", 13, 0, np.dtype(object))
BF16 = _fixed("BF16", 14, "<u2")  # numpy has no bfloat16: the bit patterns

ALL = (
    BOOL,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    INT8,
    INT16,
    INT32,
    INT64,
    FP16,
    FP32,
    FP64,
    BYTES,
    BF16,
)
BY_NAME = {dtype.name: dtype for dtype in ALL}
BY_CONFIG_NAME = {dtype.config_name: dtype for dtype in ALL}
BY_NUMBER = {dtype.number: dtype for dtype in ALL}

_BY_NUMPY = {dtype.numpy: dtype for dtype in ALL if dtype is not BF16}


def of_numpy(dtype: np.dtype) -> DataType | None:
    """Return the datatype of a numpy dtype, in any byte order; None for others (complex, datetime, …).

    Strings and bytes of fixed width (`U`, `S`) are BYTES; bfloat16 of ml_dtypes is BF16.
    """
    if (found := _BY_NUMPY.get(dtype)) is not None:
        return found
    if dtype.kind in "SU":
        return BYTES
    if dtype.name == "bfloat16":
        return BF16
    return _BY_NUMPY.get(dtype.newbyteorder("<"))
