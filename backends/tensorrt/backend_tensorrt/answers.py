"""Split the outputs of a batch by request, and export outputs that stay on the device.

run ─► [answers] ─► core.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from backend_tensorrt.cuda import DEFAULT_PRIORITY, Cuda, Memory
from core.batch import Batch
from core.devices import dlpack
from core.dtypes import DataType
from core.request import DeviceOutput
from core.tensor import DeviceTensor, Tensor


class OnDevice:
    """An output in the memory of a GPU, exported by DLPack (to CuPy, PyTorch, JAX, …).

    It is no CuPy array, because CuPy has no BF16. The memory lives as long as this object and every capsule
    made from it.
    """

    def __init__(
        self, cuda: Cuda, memory: Memory, dtype: DataType, shape: tuple[int, ...], device: int
    ):
        self.shape = shape
        self.dtype = "bfloat16" if dtype.name == "BF16" else dtype.numpy
        self._cuda = cuda
        self._memory = memory
        self._dtype = dtype
        self._device = device

    def get(self) -> np.ndarray:
        """Return a copy in host memory. Blocks until the copy is complete."""
        target = np.empty(self.shape, self._dtype.numpy)
        if target.nbytes:
            with self._cuda.on(self._device):
                stream = self._cuda.stream(DEFAULT_PRIORITY)
                self._cuda.to_host(target.ctypes.data, self._memory.ptr, target.nbytes, stream)
                stream.synchronize()
        return target

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.CUDA, self._device

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None) -> Any:
        # The batch has completed before this object is returned: the array is complete, whatever the stream.
        return dlpack.lend(
            self._memory.ptr, self._dtype, self.shape, self.__dlpack_device__(), self._memory
        )


def staying(batch: Batch, states: frozenset[str]) -> set[str]:
    """Return the names of the outputs, except for states, that a request wants in device memory."""
    return {
        output.name
        for request in batch.requests
        for output in request.outputs
        if isinstance(output, DeviceOutput) and output.name not in states
    }


def rows_of(
    batch: Batch,
    outputs: Mapping[str, Any],
    types: Mapping[str, DataType],
    whole_ones: Collection[str] = (),
) -> list[list[Tensor]]:
    """Return the tensors of each request: its rows of every output.

    whole_ones   outputs without a batch dimension (shape tensors); each request gets them whole
    A batch of one request gets every output whole.
    """
    found: list[list[Tensor]] = [[] for _ in batch.requests]
    for name, value in outputs.items():
        whole = Tensor.of(name, value, types[name])
        if len(found) == 1 or name in whole_ones:
            for tensors in found:
                tensors.append(whole)
            continue
        first = 0
        for request, tensors in zip(batch.requests, found, strict=True):
            tensors.append(_rows(whole, first, request.rows))
            first += request.rows
    return found


def _rows(whole: Tensor, first: int, count: int) -> Tensor:
    if isinstance(whole, DeviceTensor):
        return whole.rows(first, count)
    array = whole.array[first : first + count]
    return Tensor(whole.name, whole.dtype, array.shape, array=array)
