"""Management: what clients may ask about the whole server, and change in it.

frontend ─► Server.management ─► [Management].  Here for a server of one process, which answers for
itself; everywhere.py for one of several workers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from core.repository import Place
from core.request import NEWEST
from core.telemetry.families import Family

if TYPE_CHECKING:
    from core.server import Server


class Management:
    """Control operations of a server of one process, which answers for itself. Loop thread only.

    Methods raise what the methods of Server with the same names raise.
    """

    def __init__(self, server: Server):
        self._server = server

    async def ready(self) -> bool:
        """Whether requests can be served, whichever worker gets them."""
        return await self._server.check()

    async def model_ready(self, name: str, version: int = NEWEST) -> bool:
        """Whether that version, or the newest, can serve."""
        return await self._server.check_model(name, version)

    async def statistics(self, name: str = "", version: int = NEWEST) -> list[dict[str, Any]]:
        """An entry for each ready version: of one model, or of all without a name."""
        return self._server.statistics(name, version)

    async def metrics(self) -> list[Family]:
        """Every metric family with its samples of now."""
        return self._server.metrics()

    async def index(self, ready_only: bool = False) -> list[dict[str, Any]]:
        """The models of the repositories with version, state and reason."""
        await self._server.look()
        return self._server.index(ready_only)

    async def load(self, name: str, parameters: Mapping[str, Any]) -> None:
        """Load or reload a model; returns when it is ready."""
        await self._server.load_here(name, parameters)

    async def unload(self, name: str, unload_dependents: bool = False) -> None:
        """Unload a model; returns when no version is ready."""
        await self._server.unload_here(name, unload_dependents)

    async def join(self, name: str, label: str, location: str, folder: str) -> None:
        """Load a model that lies elsewhere; the arguments are those of core.repository.Place."""
        await self._server.join_here(Place(name, label, location, folder))

    async def leave(self, name: str) -> None:
        """Unload a model that has joined, and what it is composed of; returns when no request is left."""
        await self._server.leave_here(name)
        await self._server.emptied(name)

    async def load_by_model(self, name: str, parameters: Mapping[str, Any], loading: bool) -> None:
        """The same for a model that loads another; `loading` if it does so while it is loaded itself."""
        await self.load(name, parameters)

    async def unload_by_model(self, name: str, unload_dependents: bool, loading: bool) -> None:
        """The same for a model that unloads another."""
        await self.unload(name, unload_dependents)

    async def change_log_settings(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Change what is logged and how; returns all settings."""
        return self._server.change_log_settings(dict(changes))

    async def change_trace_settings(
        self, changes: Mapping[str, Any], model: str = ""
    ) -> dict[str, Any]:
        """Change what is traced, of the server or of one model; returns all settings."""
        return self._server.change_trace_settings(dict(changes), model)

    async def register_memory(self, name: str, key: str, offset: int, byte_size: int) -> None:
        """Map a region of system shared memory: SharedMemoryRegions.register."""
        self._server.shared_memory.register(name, key, offset, byte_size)

    async def unregister_memory(self, name: str = "") -> None:
        """Forget a region, or all without a name: SharedMemoryRegions.unregister."""
        self._server.shared_memory.unregister(name)

    async def register_cuda_memory(
        self, name: str, handle: bytes, device: int, byte_size: int
    ) -> None:
        """Open memory on a GPU: CudaRegions.register."""
        await self._server.cuda_shared_memory.register(name, handle, device, byte_size)

    async def unregister_cuda_memory(self, name: str = "") -> None:
        """Forget a region on a GPU, or all without a name: CudaRegions.unregister."""
        self._server.cuda_shared_memory.unregister(name)

    async def lend_memory(self, name: str, file: int, byte_size: int) -> None:
        """Map memory whose descriptor a client has sent: SharedMemoryRegions.lend."""
        self._server.shared_memory.lend(name, file, byte_size)

    async def give_back_memory(self, name: str) -> None:
        """Forget what was lent: SharedMemoryRegions.give_back."""
        self._server.shared_memory.give_back(name)
