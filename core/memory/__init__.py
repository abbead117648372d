"""Memory that clients share with the server, so that tensors need not travel in messages."""

from core.memory.cuda import CudaRegions
from core.memory.region import RegionStatus
from core.memory.regions import SharedMemoryRegions

__all__ = ["CudaRegions", "RegionStatus", "SharedMemoryRegions"]
