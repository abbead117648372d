"""ServerGpus: the options of one server, applied to its GPUs at the start and around each load."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from core.config import ModelConfig
from core.devices.visible import gpus
from core_gpu.capability import supported
from core_gpu.driver import CudaDriver, DriverError, open_driver
from core_gpu.gpu_pools import GpuPools
from core_gpu.load_limit import check_limits
from core_gpu.memory import GpuMemory
from core_gpu.options import POOL_BYTES, STATE_BYTES, GpuOptions
from core_gpu.peers import Peers

logger = logging.getLogger("core")


def open_gpus(
    options: GpuOptions,
    visible: Callable[[], Sequence[int]] = gpus,
    driver: Callable[[], CudaDriver] = open_driver,
    memory: Callable[[CudaDriver], GpuMemory] = lambda driver: GpuMemory(driver.uuid),
) -> ServerGpus | None:
    """Apply the options at the start of a server. None if this process sees no GPU that it can use.

    Logs a warning for an option about a GPU that this process does not see. Raises CoreError(INTERNAL) if a
    limit for loads is set and the memory of GPUs cannot be read.
    """
    numbers = tuple(visible())
    opened = None
    if numbers:
        try:
            opened = driver()
            numbers = numbers[: opened.count]
            usable = supported(numbers, options.min_supported_compute_capability, opened)
        except DriverError as error:
            logger.warning("the options about GPUs have no effect: the driver fails: %s", error)
            return None
    there = ", ".join(map(str, numbers)) or "none"
    for option, values in options.by_gpu().items():
        for number in values.keys() - set(numbers):
            logger.warning(
                "%s names GPU %d, which this process does not see; it sees: %s",
                *(option, number, there),
            )
    if opened is None:
        return None
    limits = {
        number: limit for number, limit in options.model_load_gpu_limit.items() if number in numbers
    }
    return ServerGpus(
        usable,
        limits,
        memory(opened) if limits else None,
        Peers(opened) if options.enable_peer_access and opened.count > 1 else None,
        _pools(opened, usable, options),
    )


def _pools(driver: CudaDriver, numbers: Sequence[int], options: GpuOptions) -> GpuPools:
    sizes, limits = options.cuda_memory_pool_byte_size, options.cuda_virtual_address_size
    return GpuPools(
        driver,
        pinned=options.pinned_memory_pool_byte_size,
        sizes={number: sizes.get(number, POOL_BYTES) for number in numbers},
        limits={number: limits.get(number, STATE_BYTES) for number in numbers},
    )


class ServerGpus:
    """The GPUs of one server. `around` runs on the event loop, what it calls on threads.

    supported   numbers of the GPUs on which instances are placed
    limits      number of a GPU → fraction of its memory beyond which no model is loaded on it
    memory      set if there are limits
    peers       set if several GPUs may access each other
    pools       its pools, not allocated yet
    """

    def __init__(
        self,
        supported: tuple[int, ...],
        limits: dict[int, float],
        memory: GpuMemory | None,
        peers: Peers | None,
        pools: GpuPools,
    ):
        self.supported = supported
        self._limits = limits
        self._memory = memory
        self._peers = peers
        self.pools = pools

    def around(self, config: ModelConfig) -> AbstractAsyncContextManager[Any] | None:
        """Return what a load is done within; None if the options do not concern this model."""
        numbers = sorted({number for group in config.instance_group for number in group.gpus})
        limited = bool(self._limits.keys() & set(numbers))
        if not limited and self._peers is None:
            return None
        return self._surrounded(config.name, numbers)

    def close(self) -> None:
        """Release the driver's objects. Call it when no load runs any more."""
        if self._memory is not None:
            self._memory.close()
        if self._peers is not None:
            self._peers.close()
        self.pools.close()

    @asynccontextmanager
    async def _surrounded(self, name: str, numbers: Sequence[int]) -> AsyncIterator[None]:
        if self._memory is not None:
            await asyncio.to_thread(check_limits, name, numbers, self._limits, self._memory)
        yield
        if self._peers is not None:
            await asyncio.to_thread(self._peers.enable)
