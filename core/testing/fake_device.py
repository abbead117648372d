"""A device for tests on machines that have none: its memory is numpy's, and it hides that.

A backend's test gives arrays of it to the pipeline and sees where they went: whether they stayed on the
device, how often they were copied to the host, whether their memory was let go.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from core import dtypes
from core.devices import dlpack


class FakeDevice:
    """One device.

    device   as DLPack has it: DLDeviceType (2 is CUDA, 12 an extension) and number
    copies   how often an array was copied to the host
    made     how many arrays there have been: slices, shapes and results are arrays too
    """

    def __init__(self, kind: int = dlpack.CUDA, number: int = 0):
        self.device = (kind, number)
        self.copies = 0
        self.made = 0
        self._arrays: weakref.WeakSet[DeviceArray] = weakref.WeakSet()

    @property
    def alive(self) -> int:
        """How many arrays somebody holds."""
        return len(self._arrays)

    def array(self, host: Any) -> DeviceArray:
        """An array on the device with these elements."""
        return DeviceArray(self, np.array(host))

    def concatenate(self, arrays: Sequence[Any]) -> DeviceArray:
        """One below the other, on the device; those of the host are moved there."""
        parts = [a._held if isinstance(a, DeviceArray) else np.asarray(a) for a in arrays]
        return DeviceArray(self, np.concatenate(parts))

    def _holds(self, array: DeviceArray) -> None:
        self.made += 1
        self._arrays.add(array)


class DeviceArray:
    """An array on a FakeDevice. Host code cannot read it but by `get`, which counts.

    It slices, reshapes and computes on the device, and exports by DLPack as an array of that device: who
    takes its capsule for host memory has a bug that no test on a host shows.
    """

    def __init__(self, place: FakeDevice, held: np.ndarray):
        self.place = place
        self._held = held
        place._holds(self)

    @property
    def shape(self) -> tuple[int, ...]:
        return self._held.shape

    @property
    def dtype(self) -> np.dtype:
        return self._held.dtype

    def get(self) -> np.ndarray:
        """A copy in host memory."""
        self.place.copies += 1
        copy: np.ndarray = self._held.copy()
        return copy

    def apply(self, function: Callable[[np.ndarray], np.ndarray]) -> DeviceArray:
        """What a kernel does: a new array of the device."""
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
