"""GpuPools: the pools of one server, allocated when an instance that uses them first opens on a GPU.

ServerGpus ─► [GpuPools] ◄─ core.devices.pools ◄─ backends, metrics
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping

import numpy as np

from core.devices import pools
from core_gpu.block import gpu_block, host_block
from core_gpu.driver import CudaDriver, DriverError
from core_gpu.growable import GrowableRange
from core_gpu.memory_views import GpuBytes, host_array
from core_gpu.pool import Pool

logger = logging.getLogger("core")


class GpuPools(pools.Pools):
    """The pools of one server. Thread-safe.

    pinned      bytes of host memory that are pinned; 0 for no pool
    sizes       number of a GPU → bytes of its pool; 0 for no pool
    limits      number of a GPU → most bytes of a growable state
    """

    def __init__(
        self,
        driver: CudaDriver,
        *,
        pinned: int,
        sizes: Mapping[int, int],
        limits: Mapping[int, int],
    ):
        self._driver = driver
        self._size = pinned
        self._sizes = dict(sizes)
        self._limits = dict(limits)
        self._opening = threading.Lock()
        # Set by `open`, once for each pool: None, or no entry, if it cannot be allocated.
        self._pinned: Pool | None = None
        self._of_gpus: dict[int, Pool] = {}
        self._closed = False

    def open(self, number: int) -> None:
        """Allocate the pools that an instance on a GPU uses and that are not there yet.

        Creates the GPU's context, as frameworks do. Logs a warning for each pool that cannot be allocated,
        and does not try again.
        """
        with self._opening:
            self._open_pinned(number)
            self._open_gpu(number)

    def close(self) -> None:
        """Give no more memory. What is in use stays valid; the rest returns to the driver."""
        with self._opening:
            self._closed = True
            self._pinned = None
            self._of_gpus.clear()
            self._limits.clear()

    def on_host(self, size: int) -> np.ndarray | None:
        if (pool := self._pinned) is None:
            return None
        lease = pool.take(size)
        return host_array(lease.address, size, lease) if lease else np.empty(size, np.uint8)

    def on_gpu(self, number: int, size: int) -> GpuBytes | None:
        if (pool := self._of_gpus.get(number)) is None:
            return None
        lease = pool.take(size)
        return GpuBytes(lease.address, size, lease) if lease else None

    def growable(self, number: int) -> GrowableRange | None:
        limit = self._limits.get(number)
        if limit is None:
            return None
        try:
            return GrowableRange(self._driver, number, limit)
        except DriverError as error:
            if self._limits.pop(number, None) is not None:
                logger.warning("states on GPU %d do not grow in place: %s", number, error)
            return None

    def pinned_bytes(self) -> tuple[int, int]:
        pool = self._pinned
        return (pool.size, pool.used) if pool is not None else (0, 0)

    def _open_pinned(self, number: int) -> None:
        size, self._size = self._size, 0
        if not size or self._closed:
            return
        try:
            self._pinned = Pool(host_block(self._driver, number, size))
        except DriverError as error:
            logger.warning(
                "no pool of pinned memory (--pinned-memory-pool-byte-size=%d): %s; frameworks allocate "
                "memory for copies themselves",
                *(size, error),
            )

    def _open_gpu(self, number: int) -> None:
        size = self._sizes.pop(number, 0)
        if not size or self._closed:
            return
        try:
            self._of_gpus[number] = Pool(gpu_block(self._driver, number, size))
        except DriverError as error:
            logger.warning(
                "no pool of memory of GPU %d (--cuda-memory-pool-byte-size=%d:%d): %s; frameworks allocate "
                "memory for inputs themselves",
                *(number, number, size, error),
            )
