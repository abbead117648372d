"""Arrays on the device of a session: inputs that are there already, outputs that stay there.

batch ─► [device] ─► run ─► [device] ─► the next model.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from core.backend import Device
from core.devices import dlpack
from core.dtypes import DataType


class Place(NamedTuple):
    """A device, as ONNX Runtime and as DLPack name it.

    name     for an IOBinding: "cuda"
    kind     DLDeviceType
    """

    name: str
    kind: int
    number: int

    @property
    def device(self) -> tuple[int, int]:
        return self.kind, self.number


def place_of(device: Device) -> Place | None:
    """Where an instance's session computes; None for the host's memory."""
    return Place("cuda", dlpack.CUDA, device.id) if device.kind == "GPU" else None


class OnDevice:
    """An output in memory of ONNX Runtime on a device, for whoever takes arrays by DLPack.

    Not the OrtValue itself: that one exports BOOL as UINT8, and older ones export nothing in Python.
    Its memory lives as long as it, and as what has been made of it.
    """

    def __init__(self, value: Any, dtype: DataType, place: Place):
        self.shape = tuple(value.shape())
        self.dtype = dtype.numpy
        self._dtype = dtype
        self._value = value
        self._place = place

    def get(self) -> np.ndarray:
        """A copy in host memory."""
        return np.asarray(self._value.numpy())

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._place.device

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None) -> Any:
        # The run has waited for the device, so there is nothing for a stream to wait for.
        address = self._value.data_ptr()
        return dlpack.lend(address, self._dtype, self.shape, self._place.device, self._value)


def gathered(arrays: list[Any], number: int) -> Any:
    """Arrays of the host and of devices one below the other, on GPU `number`, by CuPy.

    NotImplemented without CuPy, for BF16, which it does not have, and for an array that it cannot read.
    Returns when the device has done it: the session has a stream of its own.
    """
    try:
        import cupy
    except ImportError:
        return NotImplemented
    with cupy.cuda.Device(number):
        try:
            parts = [
                cupy.asarray(each) if isinstance(each, np.ndarray) else cupy.from_dlpack(each)
                for each in arrays
            ]
            whole = cupy.concatenate(parts)
        except (BufferError, TypeError, ValueError, RuntimeError):
            return NotImplemented
        cupy.cuda.get_current_stream().synchronize()
    return whole
