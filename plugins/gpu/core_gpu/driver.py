"""CudaDriver: what the driver of NVIDIA tells of the GPUs of this process, and access between them.

It needs no other library of CUDA. GPUs have the numbers that frameworks give them: CUDA_VISIBLE_DEVICES and
CUDA_DEVICE_ORDER apply. A context takes memory of a GPU: only `retain`, and what needs its result, creates or
uses one.
"""

from __future__ import annotations

import ctypes
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_…
_ALREADY_ENABLED = 704  # CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
_NAME_BYTES = 256
_PORTABLE = 1  # CU_MEMHOSTALLOC_PORTABLE: pinned for all contexts


class DriverError(Exception):
    """An error of the driver, or its absence."""


def open_driver() -> CudaDriver:
    """Load the driver's library and start it. Raises DriverError without one. Not before a fork."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise DriverError(str(error)) from error
    return CudaDriver(library)


class CudaDriver:
    """The driver. Thread-safe. Methods raise DriverError.

    library   libcuda, as ctypes.CDLL loads it
    count     number of GPUs that this process sees
    """

    def __init__(self, library: Any):
        self._library = library
        self.call("cuInit", 0)
        count = ctypes.c_int()
        self.call("cuDeviceGetCount", ctypes.byref(count))
        self.count = count.value

    def name(self, number: int) -> str:
        """Return the product name of a GPU."""
        found = ctypes.create_string_buffer(_NAME_BYTES)
        self.call("cuDeviceGetName", found, _NAME_BYTES, number)
        return found.value.decode(errors="replace")

    def uuid(self, number: int) -> str:
        """Return the UUID of a GPU, or of the MIG part that this process sees, without "GPU-" or "MIG-"."""
        found = ctypes.create_string_buffer(16)
        self.call("cuDeviceGetUuid_v2", found, number)
        return str(uuid.UUID(bytes=found.raw))

    def capability(self, number: int) -> tuple[int, int]:
        """Return the compute capability of a GPU: major and minor."""
        return self._attribute(number, _MAJOR), self._attribute(number, _MINOR)

    def can_access(self, number: int, peer: int) -> bool:
        """Return whether the machine lets a GPU read the memory of another one directly."""
        found = ctypes.c_int()
        self.call("cuDeviceCanAccessPeer", ctypes.byref(found), number, peer)
        return bool(found.value)

    def in_use(self, number: int) -> bool:
        """Return whether this process has the primary context of a GPU, which frameworks share."""
        flags, active = ctypes.c_uint(), ctypes.c_int()
        self.call("cuDevicePrimaryCtxGetState", number, ctypes.byref(flags), ctypes.byref(active))
        return bool(active.value)

    def retain(self, number: int) -> ctypes.c_void_p:
        """Return the primary context of a GPU, created if needed, and keep it until `release`."""
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), number)
        return context

    def release(self, number: int) -> None:
        self.call("cuDevicePrimaryCtxRelease_v2", number)

    @contextmanager
    def within(self, context: ctypes.c_void_p) -> Iterator[None]:
        """Make a context the current one of this thread inside the with statement."""
        self.call("cuCtxPushCurrent_v2", context)
        try:
            yield
        finally:
            self.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    def enable_access(self, context: ctypes.c_void_p, peer: ctypes.c_void_p) -> None:
        """Let the GPU of a context read the memory of the peer's. No error if it already can."""
        with self.within(context):
            self.call("cuCtxEnablePeerAccess", peer, 0, accepted=_ALREADY_ENABLED)

    def allocate_host(self, size: int) -> int:
        """Return the address of `size` new bytes of pinned host memory. Needs a current context."""
        found = ctypes.c_void_p()
        self.call("cuMemHostAlloc", ctypes.byref(found), ctypes.c_size_t(size), _PORTABLE)
        return found.value or 0

    def free_host(self, address: int) -> None:
        self.call("cuMemFreeHost", ctypes.c_void_p(address))

    def allocate(self, size: int) -> int:
        """Return the address of `size` new bytes on the GPU of the current context."""
        found = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(found), ctypes.c_size_t(size))
        return found.value

    def free(self, address: int) -> None:
        self.call("cuMemFree_v2", ctypes.c_uint64(address))

    def _attribute(self, number: int, attribute: int) -> int:
        found = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(found), attribute, number)
        return found.value

    def call(self, name: str, *arguments: Any, accepted: int = 0) -> None:
        """Call a function of the library. `accepted` is a status that is no error, besides 0.

        arguments   of types of ctypes, unless a C int has room for the number
        """
        try:
            status = getattr(self._library, name)(*arguments)
        except AttributeError:
            raise DriverError(f"the driver is too old: it has no function {name}") from None
        if status not in (0, accepted):
            text = ctypes.c_char_p()
            self._library.cuGetErrorString(status, ctypes.byref(text))
            reason = text.value.decode() if text.value else f"error {status}"
            raise DriverError(f"{name}: {reason}")
