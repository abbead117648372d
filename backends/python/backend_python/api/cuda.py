"""GPU memory through CUDA's driver, for models and for the server. No other module calls the driver.

It needs no other library of CUDA. Contexts are the primary ones, which frameworks share. A device is named by
its number in this process, as frameworks number it; its UUID is equal in all processes. Functions raise
TritonModelException with the driver's error, unless stated otherwise.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from backend_python.api.errors import TritonModelException

HANDLE_BYTES = 64  # of a CUipcMemHandle
UUID_BYTES = 16


class Shareable(NamedTuple):
    """An allocation that other processes can open."""

    handle: bytes  # CUDA IPC handle, HANDLE_BYTES long
    address: int  # of its first byte here
    size: int  # bytes


@cache
def devices() -> tuple[bytes, ...]:
    """Return the UUIDs of the devices that this process sees, by number; empty without a driver.

    Creates no context. Do not call it before a fork: CUDA does not work in a forked process.
    """
    count = ctypes.c_int()
    try:
        _call("cuInit", 0)
        _call("cuDeviceGetCount", ctypes.byref(count))
        return tuple(_uuid(number) for number in range(count.value))
    except TritonModelException:
        return ()


def copy_to_host(address: int, size: int, device: int) -> np.ndarray[Any, Any]:
    """Return a copy of `size` bytes of a device's memory, made after the work of CUDA's default stream."""
    found = np.empty(size, np.uint8)
    if size:
        with current(device):
            source = ctypes.c_uint64(address)
            _call("cuMemcpyDtoH_v2", ctypes.c_void_p(found.ctypes.data), source, _size(size))
    return found


def wait(device: int) -> None:
    """Wait for the work that was submitted to a device's default stream."""
    with current(device):
        _call("cuStreamSynchronize", ctypes.c_void_p(_LEGACY_STREAM))


def shareable(address: int, size: int, device: int) -> Shareable | None:
    """Return the allocation that contains `size` bytes at `address`; None if other processes cannot open it.

    Other processes cannot open managed memory, memory of cudaMallocAsync, memory of virtual memory
    management, memory that this process opened by a handle, and memory of devices without interprocess
    communication. Return None also if CUDA reports an error.
    """
    base, whole, capable = ctypes.c_uint64(), ctypes.c_size_t(), ctypes.c_uint64()
    handle = _Handle()
    try:
        with current(device):
            found, place = ctypes.byref(base), ctypes.c_uint64(address)
            _call("cuMemGetAddressRange_v2", found, ctypes.byref(whole), place)
            _call("cuPointerGetAttribute", ctypes.byref(capable), _IPC_CAPABLE, base)
            if not capable.value or address + size > base.value + whole.value:
                return None
            _call("cuIpcGetMemHandle", ctypes.byref(handle), base)
    except TritonModelException:
        return None
    return Shareable(bytes(handle), base.value, whole.value)


def open_handle(handle: bytes, device: int) -> tuple[int, int]:
    """Open an allocation of another process and return its address and size in bytes."""
    base, whole, address = ctypes.c_uint64(), ctypes.c_size_t(), ctypes.c_uint64()
    with current(device):
        theirs = _Handle.from_buffer_copy(handle)
        _call("cuIpcOpenMemHandle_v2", ctypes.byref(address), theirs, _LAZY_PEER_ACCESS)
        try:
            found = ctypes.byref(base)
            _call("cuMemGetAddressRange_v2", found, ctypes.byref(whole), address)
        except TritonModelException:
            _call("cuIpcCloseMemHandle", address)
            raise
    return address.value, base.value + whole.value - address.value


def close_handle(address: int, device: int) -> None:
    """Close an allocation that `open_handle` has opened."""
    with current(device):
        _call("cuIpcCloseMemHandle", ctypes.c_uint64(address))


def allocate(size: int, device: int) -> int:
    """Allocate memory, and return its address. Other processes can open it, if the device allows that."""
    address = ctypes.c_uint64()
    with current(device):
        _call("cuMemAlloc_v2", ctypes.byref(address), _size(size))
    return address.value


def free(address: int, device: int) -> None:
    """Free memory of `allocate`."""
    with current(device):
        _call("cuMemFree_v2", ctypes.c_uint64(address))


def copy(target: int, source: int, size: int, device: int) -> None:
    """Copy bytes on a device after the work of its default stream is done, and wait for the copy."""
    with current(device):
        _call("cuMemcpyDtoD_v2", ctypes.c_uint64(target), ctypes.c_uint64(source), _size(size))
        _call("cuStreamSynchronize", ctypes.c_void_p(_LEGACY_STREAM))


@contextlib.contextmanager
def current(device: int) -> Iterator[None]:
    """Make a device the current one of this thread within the `with` block."""
    _call("cuCtxPushCurrent_v2", _context(device))
    try:
        yield
    finally:
        _call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))


_LEGACY_STREAM = 1  # CU_STREAM_LEGACY
_LAZY_PEER_ACCESS = 1  # CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS
_IPC_CAPABLE = 10  # CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE
_size = ctypes.c_size_t


class _Handle(ctypes.Structure):
    """A CUipcMemHandle, passed by value."""

    _fields_ = [("reserved", ctypes.c_char * HANDLE_BYTES)]


@cache
def _driver() -> Any:
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise TritonModelException(f"GPU tensor cannot be used: {error}") from None


@cache
def _device(number: int) -> ctypes.c_int:
    device = ctypes.c_int()
    _call("cuInit", 0)
    _call("cuDeviceGet", ctypes.byref(device), number)
    return device


@cache
def _context(number: int) -> ctypes.c_void_p:
    """Return the primary context of a device, which frameworks share; it is kept until the process ends."""
    context = ctypes.c_void_p()
    _call("cuDevicePrimaryCtxRetain", ctypes.byref(context), _device(number))
    return context


def _uuid(number: int) -> bytes:
    """Return the UUID of a device, or of the MIG part that this process sees."""
    found = ctypes.create_string_buffer(UUID_BYTES)
    name = "cuDeviceGetUuid_v2" if hasattr(_driver(), "cuDeviceGetUuid_v2") else "cuDeviceGetUuid"
    _call(name, found, _device(number))
    return found.raw


def _call(name: str, *arguments: Any) -> None:
    driver = _driver()
    if status := getattr(driver, name)(*arguments):
        text = ctypes.c_char_p()
        driver.cuGetErrorString(status, ctypes.byref(text))
        reason = text.value.decode() if text.value else f"error {status}"
        raise TritonModelException(f"GPU tensor cannot be used: {name}: {reason}")
