"""Memory in the form that numpy and the libraries of GPUs use without a copy."""

from __future__ import annotations

from typing import Any

import numpy as np


def host_array(address: int, size: int, owner: object) -> np.ndarray:
    """Return host memory as uint8[size]. The array, and each view of it, keeps `owner`."""
    return np.asarray(_HostMemory(_interface(address, size), owner))


class GpuBytes:
    """Memory of a GPU, which torch, CuPy and others use by `__cuda_array_interface__`, and then keep.

    ptr     its address
    owner   lives as long as this object
    """

    def __init__(self, ptr: int, size: int, owner: object):
        self.ptr = ptr
        self.owner = owner
        self.__cuda_array_interface__ = _interface(ptr, size)


class _HostMemory:
    def __init__(self, interface: dict[str, Any], owner: object):
        self.__array_interface__ = interface
        self.owner = owner


def _interface(address: int, size: int) -> dict[str, Any]:
    """Return the description of uint8[size] at an address that both protocols share. It is writable."""
    return {"data": (address, False), "shape": (size,), "typestr": "|u1", "version": 3}
