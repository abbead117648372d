"""core's tensors as those of a model in this process, and back; no bytes are copied."""

from __future__ import annotations

from backend_python.api.tensor import Tensor
from core import dtypes
from core import tensor as core_tensor
from core.native import strings
from core.tensor import made_tensor


def model_tensor(tensor: core_tensor.Tensor) -> Tensor:
    """A tensor for the model: a read-only view of what core has."""
    return Tensor._shared(tensor.name, tensor.dtype.number, tensor.array)


def core_tensor_of(tensor: Tensor) -> core_tensor.Tensor:
    """A tensor of the model for core; BYTES are encoded."""
    dtype = dtypes.BY_NUMBER[tensor._number]
    values = tensor._array
    if values is None:
        values = tensor._values()
    if dtype is dtypes.BYTES:  # the model's array may hold str, or be of fixed width
        return made_tensor(tensor._name, dtype, values.shape, strings.encode(values), None)
    return made_tensor(tensor._name, dtype, values.shape, None, values)
