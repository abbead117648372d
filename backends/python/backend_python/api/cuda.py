"""Memory of a GPU, copied to the host by CUDA's driver.

Only for models that answer with tensors of a GPU: the driver is there, since their framework needs it.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np

from backend_python.api.errors import TritonModelException


def copy_to_host(address: int, size: int, device: int) -> np.ndarray[Any, Any]:
    """`size` bytes of a device's memory, behind the work of CUDA's default stream.

    TritonModelException with the driver's error.
    """
    found = np.empty(size, np.uint8)
    if size:
        _call("cuCtxPushCurrent_v2", _context(device))
        try:
            source = ctypes.c_uint64(address)
            _call("cuMemcpyDtoH_v2", ctypes.c_void_p(found.ctypes.data), source, _size(size))
        finally:
            _call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))
    return found


def wait(device: int) -> None:
    """Return when what was given to CUDA's default stream of a device has been done.

    TritonModelException with the driver's error.
    """
    _call("cuCtxPushCurrent_v2", _context(device))
    try:
        _call("cuStreamSynchronize", ctypes.c_void_p(_LEGACY_STREAM))
    finally:
        _call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))


_LEGACY_STREAM = 1  # CU_STREAM_LEGACY
_size = ctypes.c_size_t


@cache
def _driver() -> Any:
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise TritonModelException(f"GPU tensor cannot be copied: {error}") from None


@cache
def _context(number: int) -> ctypes.c_void_p:
    """The context of a device that frameworks share; kept until the process ends."""
    device, context = ctypes.c_int(), ctypes.c_void_p()
    _call("cuInit", 0)
    _call("cuDeviceGet", ctypes.byref(device), number)
    _call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    return context


def _call(name: str, *arguments: Any) -> None:
    driver = _driver()
    if status := getattr(driver, name)(*arguments):
        text = ctypes.c_char_p()
        driver.cuGetErrorString(status, ctypes.byref(text))
        reason = text.value.decode() if text.value else f"error {status}"
        raise TritonModelException(f"GPU tensor cannot be copied: {name}: {reason}")
