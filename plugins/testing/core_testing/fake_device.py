"""A simulated device for tests on machines without one. Its arrays are numpy arrays that hide their memory.

A test gives such arrays to the pipeline and checks that they stay on the device, how often they are copied
to the host, and that their memory is freed.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from core import dtypes
from core.devices import dlpack


class FakeDevice:
    """One simulated device.

    device   DLDeviceType of DLPack (2 is CUDA, 12 an extension) and device number
    copies   number of copies of arrays to the host
    made     number of arrays ever made, including slices, reshaped arrays and results
    """

    def __init__(self, kind: int = dlpack.CUDA, number: int = 0):
        self.device = (kind, number)
        self.copies = 0
        self.made = 0
        self._arrays: weakref.WeakSet[DeviceArray] = weakref.WeakSet()

    @property
    def alive(self) -> int:
        """Number of arrays that still exist."""
        return len(self._arrays)

    def array(self, host: Any) -> DeviceArray:
        """Return an array on the device with the elements of `host`."""
        return DeviceArray(self, np.array(host))

    def concatenate(self, arrays: Sequence[Any]) -> DeviceArray:
        """Return the arrays joined along the first dimension, on the device. Host arrays are moved there."""
        parts = [a._held if isinstance(a, DeviceArray) else np.asarray(a) for a in arrays]
        return DeviceArray(self, np.concatenate(parts))


class DeviceArray:
    """An array on a FakeDevice. Host code can read it only with `get`, which counts the copy.

    It slices, reshapes and computes on the device. DLPack exports it as an array of that device, although
    its address is host memory: code that reads the capsule as host memory works in tests, but is wrong.
    """

    def __init__(self, place: FakeDevice, held: np.ndarray):
        self.place = place
        self._held = held
        place.made += 1
        place._arrays.add(self)

    @property
    def shape(self) -> tuple[int, ...]:
        return self._held.shape

    @property
    def dtype(self) -> np.dtype:
        return self._held.dtype

    def get(self) -> np.ndarray:
        """Return a copy in host memory, and count it."""
        self.place.copies += 1
        copy: np.ndarray = self._held.copy()
        return copy

    def apply(self, function: Callable[[np.ndarray], np.ndarray]) -> DeviceArray:
        """Return a new array of the device with the result of `function`, like a kernel."""
        return DeviceArray(self.place, np.asarray(function(self._held)))

    def reshape(self, shape: tuple[int, ...]) -> DeviceArray:
        return DeviceArray(self.place, self._held.reshape(shape))

    def __getitem__(self, key: Any) -> DeviceArray:
        return DeviceArray(self.place, self._held[key])

    def __len__(self) -> int:
        return len(self._held)

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise TypeError("implicit conversion of an array on a device to numpy; use get()")

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.place.device

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None) -> Any:
        dtype = dtypes.of_numpy(self._held.dtype)
        assert dtype is not None
        held = np.ascontiguousarray(self._held)
        return dlpack.lend(held.ctypes.data, dtype, held.shape, self.place.device, held)

    def __repr__(self) -> str:
        return f"DeviceArray({self.dtype}{list(self.shape)} on {self.place.device})"
