"""MemoryControl: the control operations of shared memory.

frontend ─► [MemoryControl] ─► SharedMemoryRegions, CudaRegions, in every process of the server
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from core.control import Area, Changed, change, here
from core.control.operation import Arguments
from core.devices.visible import gpus
from core.errors import CoreError
from core.server import InferenceServer
from frontends.shared.memory.cuda import CudaRegions, DeviceStatus
from frontends.shared.memory.lent_regions import LentRegions, opened_elsewhere
from frontends.shared.memory.region import CUDA, LENT, RegionStatus
from frontends.shared.memory.regions import SharedMemoryRegions

_FREED = "the others have let it go"


def _subject(area: str) -> Callable[[Arguments], str]:
    """Return a function (arguments of an operation) → what it changes, as text.

    The text is `area` and the name of the region, or `area` alone if the name is empty.
    """
    return lambda arguments: f"{area} {arguments['name']}" if arguments["name"] else area


class MemoryControl(Area, name="memory"):
    """Registers regions of shared memory. `MemoryControl.of(server)` returns the object of a server."""

    def __init__(self, regions: SharedMemoryRegions, cuda: CudaRegions):
        self.regions = regions  # of all kinds, by name
        self.cuda = cuda  # registers regions of GPU memory
        self._lent = LentRegions(self._owner_ended)
        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    def of(cls, server: InferenceServer) -> MemoryControl:
        """Return the MemoryControl of a server. The first call, from a frontend's constructor, adds it."""
        return server.shared(_added)

    async def close(self) -> None:
        self.regions.close()

    @here("shared-memory")
    def status(self, name: str = "") -> list[RegionStatus]:
        """Return the status of one region of system memory, or of all if `name` is empty.

        Raises CoreError(NOT_FOUND) for an unknown name.
        """
        return self.regions.status(name)

    @here("shared-memory")
    def cuda_status(self, name: str = "") -> list[DeviceStatus]:
        """Return the status of one region of GPU memory, or of all if `name` is empty.

        Raises CoreError(NOT_FOUND) for an unknown name.
        """
        return self.regions.status(name, CUDA)

    @here("shared-memory", internal=True)
    def check_allowed(self) -> None:
        """Raise CoreError(UNSUPPORTED) unless clients may register memory."""
        self.regions.check_allowed()

    @change("shared-memory", subject=_subject("memory"), otherwise=_FREED)
    async def register(self, name: str, key: str, offset: int, byte_size: int) -> Changed:
        """Map a region of system shared memory. Raises what SharedMemoryRegions.register raises."""
        self.regions.register(name, key, offset, byte_size)
        return Changed(undo=lambda: self.regions.unregister(name))

    @change("shared-memory", subject=_subject("memory"), otherwise=_FREED, forgets=True)
    async def unregister(self, name: str = "") -> None:
        """Forget a region of system memory, or all if `name` is empty. An unknown name is no error.

        Nor is a name of another kind of memory; its region stays. Raises CoreError(UNSUPPORTED) unless
        clients may register memory.
        """
        self.regions.unregister(name)

    @change("shared-memory", subject=_subject("gpu-memory"), otherwise=_FREED)
    async def register_cuda(self, name: str, handle: bytes, device: int, byte_size: int) -> Changed:
        """Open memory of a GPU. Raises what CudaRegions.register raises."""
        await self.cuda.register(name, handle, device, byte_size)
        return Changed(undo=lambda: self.regions.unregister(name, CUDA))

    @change("shared-memory", subject=_subject("gpu-memory"), otherwise=_FREED, forgets=True)
    async def unregister_cuda(self, name: str = "") -> None:
        """Forget a region of GPU memory, or all if `name` is empty. An unknown name is no error.

        Names of other memory, and what is raised, are as in `unregister`.
        """
        self.regions.unregister(name, CUDA)

    @change(
        "shared-memory", subject="lent {name}", otherwise=_FREED, internal=True, hides_subject=True
    )
    async def lend_from(self, name: str, process: int, file: int, byte_size: int) -> Changed:
        """Map memory that a client has lent to the server by sending a descriptor of it.

        process   id of the process that received the descriptor, and closes it
        file      number of the descriptor in that process

        Raises what SharedMemoryRegions.lend raises, and CoreError(INTERNAL) if that process has ended or has
        closed the descriptor.
        """
        with opened_elsewhere(process, file) as found:
            self.regions.lend(name, found, byte_size)
        self._lent.watch(name, process)
        return Changed(undo=lambda: self.regions.unregister(name, LENT))

    @change(
        "shared-memory",
        subject="lent {name}",
        otherwise=_FREED,
        forgets=True,
        internal=True,
        hides_subject=True,
    )
    async def give_back(self, name: str) -> None:
        """Forget lent memory. An unknown name is no error."""
        self._lent.forget(name)
        self.regions.unregister(name, LENT)

    def _owner_ended(self, name: str) -> None:
        """Forget a lent region here at once, and by a task in every process: its own process has ended.

        Its own process held the connection of the client. Event loop only.
        """
        self.regions.unregister(name, LENT)
        task = asyncio.get_running_loop().create_task(self._forget(name))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _forget(self, name: str) -> None:
        """Call `give_back`, for every process; ignore a CoreError.

        It also removes the record of the registration, so that later processes do not repeat it.
        """
        with contextlib.suppress(CoreError):
            await self.give_back(name)


def _added(server: InferenceServer) -> MemoryControl:
    regions = SharedMemoryRegions(server.options.allow_client_shm)
    return server.control.add(MemoryControl(regions, CudaRegions(regions, gpus())))
