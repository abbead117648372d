"""Typed contents of an input: one repeated field per kind of element → the bytes of a tensor.

Numbers are cut to the width of the datatype, as in Triton: 300 as an INT8 is 44.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from core import dtypes
from core.dtypes import DataType
from core.errors import CoreError, invalid
from core.native import strings
from frontends.grpc.protocol.messages import InferTensorContents

# In the order of Triton's checks: field, its name in error texts, numpy type of its elements, and its
# datatypes. FP16 and BF16 have no field.
_FIELDS: tuple[tuple[str, str, str, tuple[DataType, ...]], ...] = (
    ("bool_contents", "BOOL", "?", (dtypes.BOOL,)),
    ("int_contents", "INT32", "<i4", (dtypes.INT8, dtypes.INT16, dtypes.INT32)),
    ("int64_contents", "INT64", "<i8", (dtypes.INT64,)),
    ("uint_contents", "UINT32", "<u4", (dtypes.UINT8, dtypes.UINT16, dtypes.UINT32)),
    ("uint64_contents", "UINT64", "<u8", (dtypes.UINT64,)),
    ("fp32_contents", "FP32", "<f4", (dtypes.FP32,)),
    ("fp64_contents", "FP64", "<f8", (dtypes.FP64,)),
    ("bytes_contents", "BYTES", "O", (dtypes.BYTES,)),
)


def raw_of(
    contents: InferTensorContents, dtype: DataType | None, input_name: str, model_name: str
) -> bytes | memoryview:
    """Return the wire form of the elements in `contents`; b"" if there are none.

    dtype   datatype of the input; None for an unknown one, which allows no elements
    Raises CoreError(INVALID) if the elements are in a field of another datatype, or in several fields.
    """
    raw: bytes | memoryview | None = None
    for field, found, code, takes in _FIELDS:
        elements = getattr(contents, field)
        if not elements:
            continue
        if raw is not None:
            raise _unexpected(input_name, model_name, ", binary data was already supplied.")
        if dtype is None or dtype not in takes:
            expected = dtype.name if dtype is not None else "<invalid>"
            raise _unexpected(
                input_name, model_name, f" of type '{found}', expected datatype '{expected}'"
            )
        raw = _packed(elements, code, dtype)
    return raw if raw is not None else b""


def _packed(elements: Sequence[Any], code: str, dtype: DataType) -> bytes | memoryview:
    if dtype is dtypes.BYTES:
        return strings.encode(np.array(list(elements), object))
    array = np.fromiter(elements, code, len(elements)).astype(dtype.numpy, copy=False)
    return array.view(np.uint8).data


def _unexpected(input_name: str, model_name: str, reason: str) -> CoreError:
    return invalid(
        f"unexpected explicit tensor data for input tensor '{input_name}' for model "
        f"'{model_name}'{reason}"
    )
