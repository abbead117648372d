"""--enable-peer-access: GPUs read each other's memory directly, over NVLink or PCIe, without the host.

Access belongs to contexts. Peers enables it between the contexts that frameworks have created, and creates
none: a context takes hundreds of megabytes of a GPU.
"""

from __future__ import annotations

import logging
import threading
from ctypes import c_void_p
from itertools import permutations

from core_gpu.driver import CudaDriver, DriverError

logger = logging.getLogger("core")


class Peers:
    """The access between GPUs of this process. Thread-safe.

    enabled   pairs (a, b): GPU a reads the memory of GPU b directly
    """

    def __init__(self, driver: CudaDriver):
        self.enabled: set[tuple[int, int]] = set()
        self._driver = driver
        self._contexts: dict[int, c_void_p] = {}  # kept: access ends with the context
        self._seen: set[tuple[int, int]] = set()
        self._looking = threading.Lock()

    def enable(self) -> None:
        """Enable access between all GPUs in use that do not have it yet. Blocks; logs errors."""
        with self._looking:
            try:
                in_use = [each for each in range(self._driver.count) if self._driver.in_use(each)]
                new = [pair for pair in permutations(in_use, 2) if pair not in self._seen]
                for number, peer in new:
                    self._seen.add((number, peer))
                    self._enable(number, peer)
            except DriverError as error:
                logger.warning("access between GPUs is not enabled: %s", error)

    def close(self) -> None:
        """Let the contexts go."""
        with self._looking:
            while self._contexts:
                self._driver.release(self._contexts.popitem()[0])

    def _enable(self, number: int, peer: int) -> None:
        if not self._driver.can_access(number, peer):
            logger.info(
                "GPU %d cannot read the memory of GPU %d directly: copies between them pass through the host",
                *(number, peer),
            )
            return
        self._driver.enable_access(self._context(number), self._context(peer))
        self.enabled.add((number, peer))
        logger.info("GPU %d reads the memory of GPU %d directly", number, peer)

    def _context(self, number: int) -> c_void_p:
        if number not in self._contexts:
            self._contexts[number] = self._driver.retain(number)
        return self._contexts[number]
