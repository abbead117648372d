"""Tensors on GPUs, between core and a model in this process (EXECUTION_MODE thread, inline).

core ─► [model_tensor] ─► execute ─► [core_tensor] ─► core.

No bytes are copied. The model gets the producer's memory, and its outputs stay on the device until host
memory is needed.
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
from core.devices.memory import DeviceMemory
from core.errors import CoreError
from core.request import DeviceOutput, InferenceRequest
from core.tensor import DeviceTensor


class Lent:
    """A tensor of a model, for any consumer of DLPack.

    An export waits until the model's work on the tensor has ended, because a consumer may use another thread
    and another stream.
    """

    def __init__(self, tensor: GpuTensor):
        self._tensor = tensor

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._tensor.__dlpack_device__()

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None) -> Any:
        cuda.wait(self.__dlpack_device__()[1])
        return self._tensor.to_dlpack()

    def get(self) -> np.ndarray[Any, Any]:
        """Return a copy in host memory, made after the model's work on the tensor."""
        return self._tensor._values()


def core_tensor(tensor: GpuTensor) -> DeviceTensor:
    """Return a model's tensor on a GPU as a tensor of core. The data stays on the GPU."""
    dtype, shape = dtypes.BY_NUMBER[tensor._number], tensor._shape
    return DeviceTensor(tensor._name, dtype, shape, DeviceMemory(Lent(tensor), dtype, shape))


def model_tensor(tensor: core_tensors.Tensor) -> Tensor | None:
    """Return core's tensor on a GPU as a tensor for a model.

    Return None if the model cannot take it there: it is not on a CUDA device, or not in C order.
    """
    if tensor.device is None or tensor.device[0] not in (dlpack.CUDA, dlpack.CUDA_MANAGED):
        return None
    with suppress(TritonModelException, BufferError):
        return Tensor.from_dlpack(tensor.name, tensor.value)
    return None


def keep_outputs(server: Any, request: InferenceRequest) -> None:
    """Change a request for another model so that its outputs may stay on that model's device.

    Do nothing if the model is unknown.

    Not thread-safe: call from the event loop only.
    """
    with suppress(CoreError):  # an unknown model: the call itself reports it
        signature = server.signature(request.model_name, request.model_version)
        names = [output.name for output in request.outputs] or list(signature.outputs)
        request.outputs = tuple(map(DeviceOutput, names))
