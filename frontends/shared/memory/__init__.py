"""Shared memory of clients: tensors that do not travel in messages."""

from frontends.shared.memory.control import MemoryControl
from frontends.shared.memory.cuda_place import CudaPlace
from frontends.shared.memory.regions import SharedMemoryRegions

__all__ = ["CudaPlace", "MemoryControl", "SharedMemoryRegions"]
