"""Datatypes and shapes as TensorFlow has them. Numbers and names are those of its types.proto."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from core import dtypes
from core.dtypes import DataType
from core.tensor import Tensor
from frontend_tfserving.signatures import is_vector

if TYPE_CHECKING:
    from core.config import InputSpec, OutputSpec, Signature


class TensorFlowType(NamedTuple):
    """A datatype of TensorFlow.

    field   of TensorProto that has its values one by one
    """

    number: int
    name: str
    field: str


NUMBERS: dict[DataType, TensorFlowType] = {
    dtypes.FP32: TensorFlowType(1, "DT_FLOAT", "float_val"),
    dtypes.FP64: TensorFlowType(2, "DT_DOUBLE", "double_val"),
    dtypes.INT32: TensorFlowType(3, "DT_INT32", "int_val"),
    dtypes.UINT8: TensorFlowType(4, "DT_UINT8", "int_val"),
    dtypes.INT16: TensorFlowType(5, "DT_INT16", "int_val"),
    dtypes.INT8: TensorFlowType(6, "DT_INT8", "int_val"),
    dtypes.BYTES: TensorFlowType(7, "DT_STRING", "string_val"),
    dtypes.INT64: TensorFlowType(9, "DT_INT64", "int64_val"),
    dtypes.BOOL: TensorFlowType(10, "DT_BOOL", "bool_val"),
    dtypes.BF16: TensorFlowType(14, "DT_BFLOAT16", "half_val"),
    dtypes.UINT16: TensorFlowType(17, "DT_UINT16", "int_val"),
    dtypes.FP16: TensorFlowType(19, "DT_HALF", "half_val"),
    dtypes.UINT32: TensorFlowType(22, "DT_UINT32", "uint32_val"),
    dtypes.UINT64: TensorFlowType(23, "DT_UINT64", "uint64_val"),
}
BY_NUMBER = {found.number: (dtype, found) for dtype, found in NUMBERS.items()}


def shape_of(signature: Signature, spec: InputSpec | OutputSpec) -> tuple[int, ...]:
    """Return the dimensions of a tensor in requests and responses; -1 for those of any size."""
    if is_vector(signature, spec):
        return (-1,)
    return (-1, *spec.dims) if signature.max_batch_size else tuple(spec.dims)


def is_numeric(dtype: DataType) -> bool:
    """Return whether the elements are numbers: neither BOOL nor BYTES."""
    return dtype.numpy.kind in "fiu"


def numbers_of(tensor: Tensor) -> Any:
    """Return the elements of a numeric tensor as an array, those of FP16 and BF16 as FP32.

    An array of core has the bit patterns of BF16.
    """
    if tensor.dtype is dtypes.BF16:
        return (tensor.array.astype(np.uint32) << 16).view(np.float32)
    if tensor.dtype is dtypes.FP16:
        return tensor.array.astype(np.float32)
    return tensor.array
