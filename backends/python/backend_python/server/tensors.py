"""core's tensors as those of a model in this process, and back; no bytes are copied."""

from __future__ import annotations

from backend_python.api.datatypes import BYTES
from backend_python.api.tensor import Tensor
from core import dtypes
from core import tensor as core_tensor
from core.native import strings


def model_tensor(tensor: core_tensor.Tensor) -> Tensor:
    """A tensor for the model: a read-only view of what core has."""
    number = tensor.dtype.number
    if number == BYTES:
        return Tensor._shared(tensor.name, number, tensor.array)
    return Tensor._received(tensor.name, number, tensor.shape, tensor.raw)


def core_tensor_of(tensor: Tensor) -> core_tensor.Tensor:
    """A tensor of the model for core; BYTES are encoded."""
    dtype = dtypes.BY_NUMBER[tensor.triton_dtype()]
    values = tensor._values()
    if dtype is dtypes.BYTES:  # the model's array may hold str, or be of fixed width
        return core_tensor.Tensor(tensor.name(), dtype, values.shape, strings.encode(values))
    return core_tensor.Tensor(tensor.name(), dtype, values.shape, array=values)
