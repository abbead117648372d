"""Shared-memory regions, which clients register, and memory that they lend."""

from __future__ import annotations

import asyncio
import contextlib
import os

from core.control.exchange import Changed
from core.control.lent_regions import LentRegions, opened_elsewhere
from core.control.operation import Area, change, here
from core.errors import CoreError
from core.memory import CudaRegions, DeviceStatus, RegionStatus, SharedMemoryRegions

_FREED = "the others have let it go"


class MemoryControl(Area, name="memory"):
    """Registers regions of shared memory.

    regions   of system memory and lent memory
    cuda      of memory of GPUs
    """

    def __init__(self, regions: SharedMemoryRegions, cuda: CudaRegions):
        self._regions = regions
        self._cuda = cuda
        self._lent = LentRegions(self._owner_ended)
        self._tasks: set[asyncio.Task[None]] = set()

    @here("shared-memory")
    def status(self, name: str = "") -> list[RegionStatus]:
        """Return one region of system memory, or all. Raises CoreError(NOT_FOUND) for an unknown name."""
        return self._regions.status(name)

    @here("shared-memory")
    def cuda_status(self, name: str = "") -> list[DeviceStatus]:
        """Return one region of GPU memory, or all. Raises CoreError(NOT_FOUND) for an unknown name."""
        return self._cuda.status(name)

    @here("shared-memory", internal=True)
    def check_allowed(self) -> None:
        """Raise CoreError(UNSUPPORTED) unless clients may register memory."""
        self._regions.check_allowed()

    @change("shared-memory", thing="memory {name}", otherwise=_FREED)
    async def register(self, name: str, key: str, offset: int, byte_size: int) -> Changed:
        """Map a region of system shared memory. Raises what SharedMemoryRegions.register raises."""
        self._regions.register(name, key, offset, byte_size)
        return Changed(undo=lambda: self._regions.unregister(name))

    @change(
        "shared-memory",
        thing=lambda arguments: f"memory {arguments['name']}".rstrip(),
        otherwise=_FREED,
        forgets=True,
    )
    async def unregister(self, name: str = "") -> None:
        """Forget a region of system memory, or all. An unknown name is no error."""
        self._regions.unregister(name)

    @change("shared-memory", thing="gpu-memory {name}", otherwise=_FREED)
    async def register_cuda(self, name: str, handle: bytes, device: int, byte_size: int) -> Changed:
        """Open memory of a GPU. Raises what CudaRegions.register raises."""
        await self._cuda.register(name, handle, device, byte_size)
        return Changed(undo=lambda: self._cuda.unregister(name))

    @change(
        "shared-memory",
        thing=lambda arguments: f"gpu-memory {arguments['name']}".rstrip(),
        otherwise=_FREED,
        forgets=True,
    )
    async def unregister_cuda(self, name: str = "") -> None:
        """Forget a region of GPU memory, or all. An unknown name is no error."""
        self._cuda.unregister(name)

    async def lend(self, name: str, file: int, byte_size: int) -> None:
        """Map memory whose descriptor a client has sent; the caller closes `file`.

        Raises what SharedMemoryRegions.lend raises.
        """
        await self.lend_from(name, os.getpid(), file, byte_size)

    @change("shared-memory", thing="lent {name}", otherwise=_FREED, internal=True, hides_thing=True)
    async def lend_from(self, name: str, process: int, file: int, byte_size: int) -> Changed:
        """Map memory whose descriptor a process of the server has."""
        # Another process opens the descriptor by its number there.
        with opened_elsewhere(process, file) as found:
            self._regions.lend(name, found, byte_size)
        self._lent.watch(name, process)
        return Changed(undo=lambda: self._regions.give_back(name))

    @change(
        "shared-memory",
        thing="lent {name}",
        otherwise=_FREED,
        forgets=True,
        internal=True,
        hides_thing=True,
    )
    async def give_back(self, name: str) -> None:
        """Forget lent memory. An unknown name is no error."""
        self._lent.forget(name)
        self._regions.give_back(name)

    def _owner_ended(self, name: str) -> None:
        """The process that has the client's connection has ended, and so has the connection."""
        self._regions.give_back(name)
        task = asyncio.get_running_loop().create_task(self._forget(name))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _forget(self, name: str) -> None:
        """A process that starts later need not know the region; each that saw the end says so."""
        with contextlib.suppress(CoreError):
            await self.give_back(name)
