"""Shared memory of clients: requests name regions instead of containing tensors."""

from frontends.shared.memory.control import MemoryControl
from frontends.shared.memory.cuda_place import CudaPlace
from frontends.shared.memory.regions import SharedMemoryRegions

__all__ = ["CudaPlace", "MemoryControl", "SharedMemoryRegions"]
