"""Tensors on GPUs, between core and a model in this process (EXECUTION_MODE thread, inline).

core ─► [model_tensor] ─► execute ─► [core_tensor] ─► core.  No bytes are copied: the model gets the memory of
who made it, and what the model gives stays where it is until somebody needs it in host memory.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from backend_python.api import cuda, dlpack
from backend_python.api.errors import TritonModelException
from backend_python.api.gpu import GpuTensor
from backend_python.api.tensor import Tensor
from core import dtypes
from core import tensor as core_tensors
from core.device_memory import DeviceMemory
from core.errors import CoreError
from core.request import DeviceOutput, InferenceRequest
from core.tensor import DeviceTensor


class Lent:
    """A tensor of a model, for everybody who takes arrays by DLPack.

    The model's work for it is ordered before what comes on the default stream of the device; who takes it
    may be on another thread and another stream, so it is waited for before it is exported.
    """

    def __init__(self, tensor: GpuTensor):
        self._tensor = tensor

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._tensor.__dlpack_device__()

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None) -> Any:
        cuda.wait(self.__dlpack_device__()[1])
        return self._tensor.to_dlpack()

    def get(self) -> np.ndarray[Any, Any]:
        """A copy in host memory, behind the model's work."""
        return self._tensor._values()


def core_tensor(tensor: GpuTensor) -> DeviceTensor:
    """A model's tensor on a GPU for core; it stays there."""
    dtype, shape = dtypes.BY_NUMBER[tensor._number], tensor._shape
    return DeviceTensor(tensor._name, dtype, shape, DeviceMemory(Lent(tensor), dtype, shape))


def model_tensor(tensor: core_tensors.Tensor) -> Tensor | None:
    """core's tensor on a GPU for a model. None for what the model cannot have there: other devices, and
    memory that is not in C order."""
    if tensor.device is None or tensor.device[0] not in (dlpack.CUDA, dlpack.CUDA_MANAGED):
        return None
    with suppress(TritonModelException, BufferError):
        return Tensor.from_dlpack(tensor.name, tensor.value)
    return None


def keep_outputs(server: Any, request: InferenceRequest) -> None:
    """The outputs of a called model may stay on its device: PreferredMemory GPU. Loop thread."""
    with suppress(CoreError):  # a model that is not there: who makes the call says so
        signature = server.signature(request.model_name, request.model_version)
        names = [output.name for output in request.outputs] or list(signature.outputs)
        request.outputs = tuple(map(DeviceOutput, names))
