"""Shared memory of clients: tensors that do not travel in messages.

control.py        MemoryControl: the control operations · lent_regions.py  regions that other workers received
regions.py        SharedMemoryRegions: name → region · region.py  a part of system memory, mapped
cuda.py           CudaRegions: memory of GPUs · cuda_place.py  a part of it · device_runtime.py  CUDA, by CuPy
"""

from frontends.shared.memory.control import MemoryControl
from frontends.shared.memory.cuda_place import CudaPlace
from frontends.shared.memory.regions import SharedMemoryRegions

__all__ = [
    "CudaPlace",
    "MemoryControl",
    "SharedMemoryRegions",
]
