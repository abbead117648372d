"""Memory that clients share with the server, so that tensors need not travel in messages."""

from core.memory.bounds import too_small
from core.memory.cuda import CudaRegions, DeviceStatus
from core.memory.device_place import DevicePlace
from core.memory.region import RegionStatus
from core.memory.regions import SharedMemoryRegions, new_name

__all__ = [
    "CudaRegions",
    "DevicePlace",
    "DeviceStatus",
    "RegionStatus",
    "SharedMemoryRegions",
    "new_name",
    "too_small",
]
