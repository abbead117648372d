"""core's tensors as those of a model in this process, and back; no bytes are copied."""

from __future__ import annotations

from backend_python.api.tensor import Tensor
from core import dtypes
from core import tensor as core_tensor
from core.native import strings
from core.tensor import made_tensor


def model_tensor(tensor: core_tensor.Tensor) -> Tensor:
    """A tensor for the model, in host memory: a read-only view of what core has."""
    return Tensor._shared(tensor.name, tensor.dtype.number, tensor.array)


def model_tensor_there(tensor: core_tensor.Tensor) -> Tensor:
    """The same for a model that takes tensors on a GPU as they are."""
    if type(tensor) is not core_tensor.Tensor:
        from backend_python.server import devices  # ctypes: only those who have GPUs pay for it

        if (found := devices.model_tensor(tensor)) is not None:
            return found
    return model_tensor(tensor)


def core_tensor_of(tensor: Tensor) -> core_tensor.Tensor:
    """A tensor of the model for core; BYTES are encoded."""
    dtype = dtypes.BY_NUMBER[tensor._number]
    values = tensor._array
    if values is None:
        if not tensor.is_cpu():
            from backend_python.server import devices

            return devices.core_tensor(tensor)  # type: ignore[arg-type]  # a GpuTensor
        values = tensor._values()
    if dtype is dtypes.BYTES:  # the model's array may hold str, or be of fixed width
        return made_tensor(tensor._name, dtype, values.shape, strings.encode(values), None)
    return made_tensor(tensor._name, dtype, values.shape, None, values)
