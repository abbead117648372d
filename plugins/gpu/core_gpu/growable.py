"""GrowableRange: addresses of a GPU to which memory is added, so that a state grows without a copy.

pools ─► [GrowableRange] ─► the driver's functions for virtual memory.
"""

from __future__ import annotations

import ctypes
import logging
import weakref
from ctypes import c_size_t, c_uint64

from core_gpu.driver import CudaDriver, DriverError
from core_gpu.memory_views import GpuBytes

logger = logging.getLogger("core")

_PINNED = 1  # CU_MEM_ALLOCATION_TYPE_PINNED
_DEVICE = 1  # CU_MEM_LOCATION_TYPE_DEVICE
_READ_AND_WRITE = 3  # CU_MEM_ACCESS_FLAGS_PROT_READWRITE
_MINIMUM = 0  # CU_MEM_ALLOC_GRANULARITY_MINIMUM


class _Location(ctypes.Structure):
    """CUmemLocation."""

    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class _Properties(ctypes.Structure):
    """CUmemAllocationProp. The last three fields are zero: no other process, no special memory."""

    _fields_ = [
        ("type", ctypes.c_int),
        ("handle_types", ctypes.c_int),
        ("location", _Location),
        ("win32", ctypes.c_void_p),
        ("flags", ctypes.c_ubyte * 8),
    ]


class _Access(ctypes.Structure):
    """CUmemAccessDesc."""

    _fields_ = [("location", _Location), ("flags", ctypes.c_int)]


class GrowableRange:
    """A range of addresses on one GPU. The first bytes have memory. Not thread-safe.

    The range ends, with its memory, when neither it nor a GpuBytes of it is referred to: no work of the
    GPU may use it by then.

    address   of its first byte
    limit     most bytes
    """

    def __init__(self, driver: CudaDriver, number: int, limit: int):
        """Reserve the addresses, without memory. Raises DriverError."""
        self._driver = driver
        self._context = driver.retain(number)
        place = _Location(_DEVICE, number)
        self._properties = _Properties(type=_PINNED, location=place)
        self._access = _Access(place, _READ_AND_WRITE)
        self._pieces: list[tuple[int, int]] = []  # address and size of the memory that was added
        self.limit = limit
        self._size = 0  # bytes that have memory
        found, grain = c_uint64(), c_size_t()
        try:
            with driver.within(self._context):
                given = ctypes.byref(grain), ctypes.byref(self._properties)
                driver.call("cuMemGetAllocationGranularity", *given, _MINIMUM)
                self._grain = grain.value
                whole = c_size_t(self._rounded(limit))
                none = c_size_t(0), c_uint64(0), c_uint64(0)  # any alignment, any address, no flags
                driver.call("cuMemAddressReserve", ctypes.byref(found), whole, *none)
        except DriverError:
            driver.release(number)
            raise
        self.address = found.value
        end = weakref.finalize(
            self, _free, driver, number, self._context, self.address, whole.value, self._pieces
        )
        end.atexit = False

    def memory(self, size: int) -> GpuBytes | None:
        """Return the first `size` bytes, with what was written to them before.

        Adds memory if needed. None if the GPU has not enough of it, or if `size` is above `limit`.
        """
        if size > self.limit:
            return None
        more = self._rounded(size) - self._size
        if more > 0:
            try:
                with self._driver.within(self._context):
                    self._add(more)
            except DriverError as error:
                logger.debug("a state cannot grow in place: %s", error)
                return None
        return GpuBytes(self.address, size, self)

    def _add(self, size: int) -> None:
        call, at, handle = self._driver.call, c_uint64(self.address + self._size), c_uint64()
        properties = ctypes.byref(self._properties)
        call("cuMemCreate", ctypes.byref(handle), c_size_t(size), properties, c_uint64(0))
        try:
            call("cuMemMap", at, c_size_t(size), c_size_t(0), handle, c_uint64(0))
        finally:
            call("cuMemRelease", handle)  # the mapping alone keeps the memory from now on
        try:
            call("cuMemSetAccess", at, c_size_t(size), ctypes.byref(self._access), c_size_t(1))
        except DriverError:
            call("cuMemUnmap", at, c_size_t(size))
            raise
        self._pieces.append((at.value, size))
        self._size += size

    def _rounded(self, size: int) -> int:
        """Return the multiple of the driver's granularity that has room for `size` bytes."""
        return -(-size // self._grain) * self._grain


def _free(
    driver: CudaDriver,
    number: int,
    context: ctypes.c_void_p,
    address: int,
    size: int,
    pieces: list[tuple[int, int]],
) -> None:
    """Give a range and its memory back. Logs errors: the process or the GPU ends."""
    try:
        with driver.within(context):
            for start, length in pieces:
                driver.call("cuMemUnmap", c_uint64(start), c_size_t(length))
            driver.call("cuMemAddressFree", c_uint64(address), c_size_t(size))
        driver.release(number)
    except DriverError as error:
        logger.debug("the memory of a state is not freed: %s", error)
