"""CudaPlace: a part of a client's GPU memory that holds an input or receives an output."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from core.devices import dlpack
from core.devices.memory import DeviceMemory
from core.dtypes import DataType
from core.errors import invalid
from core.output_memory import DevicePlace, too_small
from core.tensor import DeviceTensor, Tensor

if TYPE_CHECKING:
    from frontends.shared.memory.cuda import DeviceRegion


class CudaPlace(DevicePlace):
    """A range of bytes in GPU memory. It keeps its region open. Thread-safe."""

    def __init__(self, region: DeviceRegion, address: int, nbytes: int):
        self._region = region
        self._address = address
        self.nbytes = nbytes

    def tensor(self, name: str, dtype: DataType, shape: tuple[int, ...], model: str) -> Tensor:
        """Return a tensor `name` on the device, whose memory is this place. It keeps the region open.

        model   name of the model, for errors
        Raises CoreError(INVALID) if the size of the place differs from the size of such a tensor.
        """
        size = math.prod(shape) * dtype.byte_size
        if size != self.nbytes:
            raise invalid(
                f"input byte size mismatch for input '{name}' for model '{model}'. Expected {size}, got "
                f"{self.nbytes}"
            )
        return DeviceTensor(
            name, dtype, shape, DeviceMemory(_CudaArray(self, dtype, shape), dtype, shape)
        )

    def get(self) -> np.ndarray:
        """Copy the bytes of this place to host memory, and return the copy. Blocks until the copy is done."""
        found = np.empty(self.nbytes, np.uint8)
        if self.nbytes:
            region = self._region
            region.runtime.to_host(found, self._address, region.status.device_id)
        return found

    def fill(self, tensor: Tensor) -> None:
        """Copy an output to the start of this place, and wait until the copy is done.

        A contiguous tensor on a CUDA GPU is copied directly, if its framework exports it. Every other tensor
        is copied from host memory, where a tensor of a device is copied first. Raises CoreError(INTERNAL) if
        the place is too small.
        """
        size = tensor.byte_size
        if size > self.nbytes:
            raise too_small(tensor.name, self.nbytes, size)
        if not size:
            return
        runtime, device = self._region.runtime, self._region.status.device_id
        if tensor.device is not None and tensor.device[0] == dlpack.CUDA:
            array = tensor.value  # kept until the copy is done
            try:
                found = dlpack.array_info(dlpack.exported(array))
            except (
                BufferError
            ):  # PyTorch raises it if another device is the current one of this thread
                found = None
            if found is not None and found.in_order:
                runtime.between(self._address, device, found.address, found.device[1], size)
                return
        runtime.from_host(self._address, np.frombuffer(tensor.raw, np.uint8), device)


class _CudaArray:
    """The elements of a CudaPlace as an array, which other libraries can take by DLPack."""

    def __init__(self, place: CudaPlace, dtype: DataType, shape: tuple[int, ...]):
        self.dtype = dlpack.name_of(dtype)
        self.shape = shape
        self._place = place
        self._dtype = dtype

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._place._region.device

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None) -> Any:
        # The client wrote before it sent the request: there is no stream to wait for.
        place = self._place
        return dlpack.lend(place._address, self._dtype, self.shape, place._region.device, self)

    def get(self) -> np.ndarray:
        """Return a copy in host memory. For BF16 its elements are the bit patterns."""
        return self._place.get().view(self._dtype.numpy).reshape(self.shape)
