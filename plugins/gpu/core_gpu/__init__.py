"""Options of Triton about GPUs: which ones are used, how full they may be, access between them, pools.

core_server_starting ─► server_gpus.py ─► capability.py, load_limit.py, peers.py ─► driver.py, memory.py
                                      └─► gpu_pools.py ─► pool.py, block.py, growable.py ─► driver.py
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

import core
from core.devices import pools
from core_gpu.options import GpuOptions

if TYPE_CHECKING:
    from core.governing import ModelVersion
    from core.options import Flags
    from core.server import InferenceServer
    from core_gpu.server_gpus import ServerGpus

_servers: dict[int, ServerGpus] = {}  # by the id of `server.models`


@core.hookimpl
def core_add_options(parser: Flags) -> None:
    parser.add_section(GpuOptions)


@core.hookimpl
def core_server_starting(server: InferenceServer) -> None:
    """Apply the options. Raises CoreError if a limit is set and the memory of GPUs cannot be read."""
    from core_gpu.server_gpus import open_gpus

    if (found := open_gpus(GpuOptions.of(server.options))) is not None:
        server.manager.place_on(found.supported)
        pools.use(found.pools)
        _servers[id(server.models)] = found


@core.hookimpl
def core_around_load(
    version: ModelVersion, server: Any
) -> AbstractAsyncContextManager[object] | None:
    found = _servers.get(id(server))
    return found.around(version.config) if found is not None else None


@core.hookimpl
def core_server_stopping(server: InferenceServer) -> None:
    if (found := _servers.pop(id(getattr(server, "models", None)), None)) is not None:
        pools.leave(found.pools)
        found.close()
