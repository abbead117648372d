"""CudaRegions: memory of GPUs that clients share by the handles of CUDA's interprocess communication.

register ─► open the handle ─► [DeviceRegion] ─► DevicePlace ─► tensors of requests, outputs
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
from core.memory.bounds import check_place
from core.memory.device_place import DevicePlace
from core.memory.device_runtime import DeviceRuntime, NoRuntime, find_runtime
from core.memory.regions import SharedMemoryRegions

logger = logging.getLogger("core")

HANDLE_BYTES = 64  # of a cudaIpcMemHandle_t


class DeviceStatus(NamedTuple):
    """What clients are told about a region."""

    name: str
    device_id: int
    byte_size: int


class DeviceRegion:
    """Memory of a client's process on a GPU, opened here. Its places keep it open. Any thread.

    status    as it was registered
    address   of its first byte, in the memory of the device
    """

    kind = "cuda"

    def __init__(self, status: DeviceStatus, address: int, runtime: DeviceRuntime):
        self.status = status
        self.address = address
        self.runtime = runtime

    @property
    def device(self) -> tuple[int, int]:
        """As DLPack has it."""
        return (dlpack.CUDA, self.status.device_id)

    def view(self, offset: int, byte_size: int) -> DevicePlace:
        """Where an output goes. Raises CoreError(INVALID) for what is not within the region."""
        check_place(self.status.name, self.status.byte_size, offset, byte_size)
        return DevicePlace(self, self.address + offset, byte_size)

    def read(self, offset: int, byte_size: int, dtype: DataType | None) -> DevicePlace | bytes:
        """Where an input is; elements of BYTES, which are no array of a device, are copied to the host."""
        place = self.view(offset, byte_size)
        return place.get().tobytes() if dtype is dtypes.BYTES else place

    def __del__(self) -> None:
        try:
            self.runtime.close(self.address, self.status.device_id)
        except Exception as error:  # each library has its own
            logger.error("failed to close CUDA IPC handle: %s", error)


class CudaRegions:
    """The regions on GPUs among all regions. Loop thread only; handles are opened on another thread.

    regions   where they are kept, by name; decides whether clients may share memory at all
    gpus      the numbers of those that this process sees
    find      gives what speaks to the GPUs, or raises NoRuntime; called once, by the first registration
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
        byte_size   of the memory from its first byte on
        Raises CoreError: UNSUPPORTED when not allowed, ALREADY_EXISTS for a name that is taken, INVALID
        without GPUs and for what cannot be opened or is smaller, UNAVAILABLE when there are too many.
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
        runtime, device = self._loaded(status.name), status.device_id
        try:
            address = runtime.open(handle, device)
        except Exception as error:  # each library has its own
            logger.error("failed to open CUDA IPC handle: %s", error)
            raise invalid("failed to register shared memory region: invalid args") from None
        region = DeviceRegion(status, address, runtime)  # from now on it closes the handle
        try:
            found = runtime.size(address, device)
        except Exception as error:
            logger.error("failed to get the size of CUDA shared memory: %s", error)
            found = 0
        if status.byte_size > found:
            del region  # closed now, and not when somebody forgets the error
            raise invalid(f"failed to register shared memory region '{status.name}': invalid args")
        return region

    def _loaded(self, name: str) -> DeviceRuntime:
        if self._runtime is None:
            try:
                self._runtime = self._find()
            except NoRuntime as error:
                logger.error("CUDA shared memory cannot be used: %s", error)
                raise _no_gpus(name) from None
        return self._runtime

    def unregister(self, name: str = "") -> None:
        """Forget a region, or all without a name; an unknown one is no error.

        Requests that use it finish first. Raises CoreError(UNSUPPORTED) when not allowed.
        """
        self._regions.check_allowed()
        self._regions.remove(DeviceRegion.kind, name)

    def status(self, name: str = "") -> list[DeviceStatus]:
        """One region, or all without a name. Raises CoreError(NOT_FOUND) for an unknown name."""
        return [region.status for region in self._regions.of_kind(DeviceRegion.kind, name)]


def _no_gpus(name: str) -> CoreError:
    return invalid(f"failed to register CUDA shared memory region: '{name}', GPUs not supported")
