"""Memory of the program for outputs: an allocator gives it, the outputs are copied into it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from core.devices import dlpack
from tritonserver._api._devices import moved, written_to
from tritonserver._api._enums import DataType, MemoryType
from tritonserver._api._errors import InternalError
from tritonserver._api._memorybuffer import MemoryBuffer
from tritonserver._api._tensor import Tensor


class MemoryAllocator(ABC):
    """Base class of allocators for the outputs of requests (`output_memory_allocator`)."""

    @abstractmethod
    def allocate(
        self, size: int, memory_type: MemoryType, memory_type_id: int, tensor_name: str
    ) -> MemoryBuffer:
        """Return writable memory for an output, of at least `size` bytes. May be of another type.

        Called on the thread that takes the response.
        """


class HostAllocator(MemoryAllocator):
    """Gives host memory of numpy."""

    def allocate(
        self, size: int, memory_type: MemoryType, memory_type_id: int, tensor_name: str
    ) -> MemoryBuffer:
        """Return `size` bytes of host memory, whatever type is asked for."""
        return MemoryBuffer.from_dlpack(np.empty(size, np.uint8))


class DeviceAllocator(MemoryAllocator):
    """Gives memory of a GPU, by CuPy or PyTorch."""

    def allocate(
        self, size: int, memory_type: MemoryType, memory_type_id: int, tensor_name: str
    ) -> MemoryBuffer:
        """Return `size` bytes on GPU `memory_type_id`. Raises UnsupportedError without either library."""
        empty = Tensor.from_dlpack(np.empty(size, np.uint8))
        return MemoryBuffer.from_dlpack(moved(empty, (MemoryType.GPU, memory_type_id)))


default_memory_allocators: dict[MemoryType, MemoryAllocator] = {
    MemoryType.CPU: HostAllocator(),
    MemoryType.GPU: DeviceAllocator(),
}


def placed(
    name: str, tensor: Tensor, place: tuple[MemoryType, int], allocator: MemoryAllocator
) -> Tensor:
    """Return the output in memory of an allocator.

    Raises InternalError if the allocator gives no MemoryBuffer, or one that is too small; and what it raises.
    """
    buffer: Any = allocator.allocate(tensor.size, *place, name)
    if not isinstance(buffer, MemoryBuffer) or buffer.size < tensor.size:
        raise InternalError(
            f"the allocator gave {buffer!r} for output '{name}', expected a MemoryBuffer of at least "
            f"{tensor.size} bytes"
        )
    used = MemoryBuffer(
        buffer.data_ptr, buffer.memory_type, buffer.memory_type_id, tensor.size, buffer.owner
    )
    target = Tensor(DataType.UINT8, [tensor.size], used)
    _copy(Tensor(DataType.UINT8, [tensor.size], tensor.memory_buffer), target)
    return Tensor(tensor.data_type, tensor.shape, used)


def _copy(source: Tensor, target: Tensor) -> None:
    """Copy UINT8[n] into memory of the same size."""
    if target.memory_type is not MemoryType.GPU:
        found = dlpack.host_view(target.__dlpack__())
        host = np.asarray(_Writable(found))
        host[...] = dlpack.host_view(source.to_host().__dlpack__())
        return
    written_to(target, moved(source, (MemoryType.GPU, target.memory_type_id)))


class _Writable:
    """The memory of a read-only view, whose owner permits to write to it."""

    def __init__(self, view: np.ndarray):
        self._view = view
        found = view.__array_interface__
        self.__array_interface__ = {**found, "data": (found["data"][0], False)}
