"""Convert core's tensors to those of a model in this process, and back, without copies."""

from __future__ import annotations

from backend_python.api.datatypes import BYTES
from backend_python.api.tensor import Tensor, shared
from core import dtypes
from core import tensor as core_tensor
from core.native import strings
from core.tensor import array_tensor, new_tensor


def model_tensor(tensor: core_tensor.Tensor) -> Tensor:
    """Return a tensor for the model, in host memory: a read-only view of core's data."""
    return shared(tensor.name, tensor.dtype.number, tensor.array)


def model_tensor_there(tensor: core_tensor.Tensor) -> Tensor:
    """Return a tensor for the model: on a GPU if it is there and the model can take it, else on the host."""
    if type(tensor) is not core_tensor.Tensor:
        from backend_python.server import devices  # ctypes: imported only with GPUs

        if (found := devices.model_tensor(tensor)) is not None:
            return found
    return model_tensor(tensor)


def core_tensor_of(tensor: Tensor) -> core_tensor.Tensor:
    """Return a model's tensor as a tensor of core. It stays on a GPU if it is there. BYTES are encoded."""
    number = tensor._number
    values = tensor._array
    if values is None:
        if not tensor.is_cpu():
            from backend_python.server import devices

            return devices.core_tensor(tensor)  # type: ignore[arg-type]  # a GpuTensor
        values = tensor._values()
    if number == BYTES:  # the model's array may hold str, or be of fixed width
        return new_tensor(tensor._name, dtypes.BYTES, values.shape, strings.encode(values), None)
    return array_tensor(tensor._name, number, values)
