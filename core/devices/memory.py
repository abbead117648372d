"""DeviceMemory: an array on a device, and at most one copy of it on the host.

execute ─► [DeviceMemory] ─► DeviceTensor (core/tensor.py) ─► the next step
"""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np

from core.devices import dlpack
from core.dtypes import DataType
from core.errors import internal


class DeviceMemory:
    """An array of a backend. Tensors of its rows, of other shapes or of other names share one DeviceMemory.

    array    the producer's array; never written to, kept until the last tensor is freed
    device   DLDeviceType and number of the device
    """

    def __init__(self, array: Any, dtype: DataType, shape: tuple[int, ...]):
        kind, number = array.__dlpack_device__()
        self.array = array
        self.shape = shape
        self.device = (int(kind), int(number))
        self._dtype = dtype
        self._host: np.ndarray | None = None
        self._copying = threading.Lock()  # several threads may need the copy

    def part(self, first: int, rows: int, shape: tuple[int, ...]) -> Any:
        """Return `rows` rows from row `first` on (-1: all) as an array of `shape` on the device."""
        found, have = self.array, self.shape
        if first >= 0:
            have = (rows, *self.shape[1:])
            if hasattr(found, "__getitem__"):
                found = found[first : first + rows]
            else:
                found = dlpack.View(found, self._dtype, have, first * math.prod(have[1:]))
        if have == shape:
            return found
        if callable(getattr(found, "reshape", None)):
            return found.reshape(shape)
        return dlpack.View(found, self._dtype, shape)

    def host(self, name: str) -> np.ndarray:
        """Return a read-only copy of the whole array in host memory. Only the first call makes it. Blocks.

        name   of the tensor, for the text of an error
        Thread-safe. Raises CoreError(INTERNAL) if the array cannot be copied.
        """
        with self._copying:
            if self._host is None:
                self._host = self._copied(name)
            return self._host

    def _copied(self, name: str) -> np.ndarray:
        found: np.ndarray
        try:
            found = dlpack.to_host(self.array).view()
        except Exception as error:  # each library has its own errors
            raise internal(
                f"tensor '{name}' is on device {self.device} and cannot be copied to host memory: "
                f"{type(error).__name__}: {error}"
            ) from error
        dtype = self._dtype.numpy
        if (
            found.dtype != dtype
            and found.dtype.itemsize == dtype.itemsize
            and found.dtype.kind != "O"
        ):
            found = found.view(dtype)  # bit patterns of BF16, or another name of the same type
        if found.shape != self.shape or found.dtype != dtype:
            raise internal(
                f"tensor '{name}' is {self._dtype}{list(self.shape)} on device {self.device}, its copy in "
                f"host memory {found.dtype}{list(found.shape)}"
            )
        found.flags.writeable = False
        return found
