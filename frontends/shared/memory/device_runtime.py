"""DeviceRuntime: opens and copies GPU memory with CuPy."""

from __future__ import annotations

import ctypes
from importlib import import_module
from typing import Any

import numpy as np

_LAZY_PEER_ACCESS = 1  # cudaIpcMemLazyEnablePeerAccess
_TO_DEVICE, _TO_HOST = 1, 2  # cudaMemcpyKind


class NoRuntime(Exception):
    """Raised if GPU memory cannot be used; the text gives the reason."""


def find_runtime() -> DeviceRuntime:
    """Import CuPy and return the runtime. Takes seconds. Thread-safe.

    Raises NoRuntime if CuPy is not installed, or if the machine has no usable driver or GPU.
    """
    try:
        cupy = import_module("cupy")
        cupy.cuda.runtime.getDeviceCount()
        return DeviceRuntime(cupy.cuda, ctypes.CDLL("libcuda.so.1"))
    except ImportError as error:
        raise NoRuntime(f"{error}; try: pip install cupy-cuda12x") from error
    except Exception as error:  # no driver, no device: CUDARuntimeError, OSError
        raise NoRuntime(f"{type(error).__name__}: {error}") from error


class DeviceRuntime:
    """Opens and copies GPU memory. Thread-safe. Each copy is done when its method returns.

    cuda     the module cupy.cuda, whose errors the methods raise
    driver   the library libcuda, which tells the size of memory; CuPy has no function for it
    """

    def __init__(self, cuda: Any, driver: Any):
        self._cuda = cuda
        self._driver = driver

    def open(self, handle: bytes, device: int) -> int:
        """Open memory of another process on a device, and return its address in this process."""
        with self._cuda.Device(device):
            return int(self._cuda.runtime.ipcOpenMemHandle(handle, _LAZY_PEER_ACCESS))

    def size(self, address: int, device: int) -> int:
        """Return the number of bytes from `address` to the end of its allocation. Raises OSError."""
        base, size = ctypes.c_uint64(), ctypes.c_size_t()
        with self._cuda.Device(device):
            status = self._driver.cuMemGetAddressRange_v2(
                ctypes.byref(base), ctypes.byref(size), ctypes.c_uint64(address)
            )
        if status:
            raise OSError(f"cuMemGetAddressRange: status {status}")
        return base.value + size.value - address

    def close(self, address: int, device: int) -> None:
        with self._cuda.Device(device):
            self._cuda.runtime.ipcCloseMemHandle(address)

    def to_host(self, target: np.ndarray, address: int, device: int) -> None:
        """Copy `target.nbytes` bytes from `address` on the device into `target`."""
        with self._cuda.Device(device):
            self._cuda.runtime.memcpy(target.ctypes.data, address, target.nbytes, _TO_HOST)

    def from_host(self, address: int, source: np.ndarray, device: int) -> None:
        """Copy all bytes of `source` to `address` on the device."""
        with self._cuda.Device(device):
            self._cuda.runtime.memcpy(address, source.ctypes.data, source.nbytes, _TO_DEVICE)
            # A copy from pageable memory may return before its last bytes arrive.
            self._cuda.runtime.streamSynchronize(0)

    def between(
        self, target: int, target_device: int, source: int, source_device: int, byte_size: int
    ) -> None:
        """Copy `byte_size` bytes within one device, or from one device to another."""
        with self._cuda.Device(target_device):
            self._cuda.runtime.memcpyPeer(target, target_device, source, source_device, byte_size)
            # A copy within a device returns before it is done.
            self._cuda.runtime.streamSynchronize(0)
