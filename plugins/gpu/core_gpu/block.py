"""Block: memory of the driver, freed with the last object that refers to it."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable

from core_gpu.driver import CudaDriver, DriverError

logger = logging.getLogger("core")


class Block:
    """Memory at one address: pinned memory of the host, or memory of a GPU.

    address   of its first byte
    size      in bytes
    """

    def __init__(self, address: int, size: int, free: Callable[[], None]):
        self.address = address
        self.size = size
        # Not at exit: a process that ends gives all memory back, and a library may still use this one.
        weakref.finalize(self, free).atexit = False


def host_block(driver: CudaDriver, number: int, size: int) -> Block:
    """Return new pinned host memory, for all GPUs. `number`: the GPU whose context allocates it.

    Raises DriverError.
    """
    return _block(driver, number, size, driver.allocate_host, driver.free_host)


def gpu_block(driver: CudaDriver, number: int, size: int) -> Block:
    """Return new memory of a GPU. Raises DriverError."""
    return _block(driver, number, size, driver.allocate, driver.free)


def _block(
    driver: CudaDriver,
    number: int,
    size: int,
    allocate: Callable[[int], int],
    free: Callable[[int], None],
) -> Block:
    context = driver.retain(number)
    try:
        with driver.within(context):
            address = allocate(size)
    except DriverError:
        driver.release(number)
        raise

    def end() -> None:
        try:
            with driver.within(context):
                free(address)
            driver.release(number)
        except DriverError as error:  # the process or the GPU ends
            logger.debug("memory for copies is not freed: %s", error)

    return Block(address, size, end)
