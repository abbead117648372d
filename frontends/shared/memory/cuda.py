"""CudaRegions: GPU memory that clients share by handles of CUDA's interprocess communication.

register ─► open the handle ─► [DeviceRegion] ─► CudaPlace ─► tensors of requests, outputs
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

from core import dtypes
from core.devices import dlpack
from core.dtypes import DataType
from core.errors import CoreError, invalid
from frontends.shared.memory.cuda_place import CudaPlace
from frontends.shared.memory.device_runtime import DeviceRuntime, NoRuntime, find_runtime
from frontends.shared.memory.region import CUDA, check_place
from frontends.shared.memory.regions import SharedMemoryRegions

logger = logging.getLogger("core")

HANDLE_BYTES = 64  # of a cudaIpcMemHandle_t


class DeviceStatus(NamedTuple):
    """The status of a region for clients; its size is in bytes."""

    name: str
    device_id: int
    byte_size: int


class DeviceRegion:
    """GPU memory of a client, opened in this process until its last CudaPlace is freed. Thread-safe."""

    kind = CUDA

    def __init__(self, status: DeviceStatus, address: int, runtime: DeviceRuntime):
        self.status = status  # as registered
        self.address = address  # of its first byte, on the device
        self.runtime = runtime

    @property
    def device(self) -> tuple[int, int]:
        return (dlpack.CUDA, self.status.device_id)

    def view(self, offset: int, byte_size: int) -> CudaPlace:
        """Return a place for an output. Raises CoreError(INVALID) if it is not within the region."""
        check_place(self.status.name, self.status.byte_size, offset, byte_size)
        return CudaPlace(self, self.address + offset, byte_size)

    def read(self, offset: int, byte_size: int, dtype: DataType | None) -> CudaPlace | bytes:
        """Return the place of an input. For the datatype BYTES return a copy of its bytes in host memory.

        BYTES is copied because GPUs have no arrays of it. Raises what `view` raises.
        """
        place = self.view(offset, byte_size)
        return place.get().tobytes() if dtype is dtypes.BYTES else place

    def __del__(self) -> None:
        try:
            self.runtime.close(self.address, self.status.device_id)
        except Exception as error:  # each library has its own errors
            logger.error("failed to close CUDA IPC handle: %s", error)


class CudaRegions:
    """Registers regions of GPU memory. Call it from the event loop only. Another thread opens the handles.

    regions   stores the regions, and checks whether clients may register memory
    gpus      numbers of the GPUs that this process can use; empty if there are none
    find      returns the runtime, or raises NoRuntime; it is called again until it has succeeded once
    """

    def __init__(
        self,
        regions: SharedMemoryRegions,
        gpus: Sequence[int] = (),
        find: Callable[[], DeviceRuntime] = find_runtime,
    ):
        self._regions = regions
        self._gpus = tuple(gpus)
        self._find = find
        self._runtime: DeviceRuntime | None = None

    async def register(self, name: str, handle: bytes, device: int, byte_size: int) -> None:
        """Open memory of a client on GPU `device`, under `name`.

        handle      64 bytes, a cudaIpcMemHandle_t
        byte_size   size of the region, which starts at the first byte of the memory
        Raises CoreError: UNSUPPORTED if clients may not register memory, ALREADY_EXISTS for a name in use,
        INVALID if this process has no GPUs, an argument is invalid, or the memory cannot be opened or is
        smaller than `byte_size`, UNAVAILABLE for too many regions.
        """
        self._regions.check_allowed()
        if not name:
            raise invalid("'region name' is necessary to register cuda shared memory region")
        self._regions.check_free(name)
        if not self._gpus:
            raise _no_gpus(name)
        if len(handle) != HANDLE_BYTES or byte_size <= 0 or device not in self._gpus:
            raise invalid(f"failed to register shared memory region '{name}': invalid args")
        status = DeviceStatus(name, device, byte_size)
        opened = asyncio.get_running_loop().run_in_executor(None, self._open, status, handle)
        self._regions.add(name, await opened)

    def _open(self, status: DeviceStatus, handle: bytes) -> DeviceRegion:
        device = status.device_id
        try:
            runtime = self._runtime = self._runtime or self._find()
            address = runtime.open(handle, device)
        except NoRuntime as error:
            logger.error("CUDA shared memory cannot be used: %s", error)
            raise _no_gpus(status.name) from None
        except Exception as error:  # each library has its own errors
            logger.error("failed to open CUDA IPC handle: %s", error)
            raise invalid("failed to register shared memory region: invalid args") from None
        region = DeviceRegion(status, address, runtime)  # from now on it closes the handle
        try:
            found = runtime.size(address, device)
        except Exception as error:
            logger.error("failed to get the size of CUDA shared memory: %s", error)
            found = 0
        if status.byte_size > found:
            del region  # closes the handle now, and not when the error is freed
            raise invalid(f"failed to register shared memory region '{status.name}': invalid args")
        return region


def _no_gpus(name: str) -> CoreError:
    return invalid(f"failed to register CUDA shared memory region: '{name}', GPUs not supported")
