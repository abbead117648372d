"""Arrays on the device of a session: inputs that are read there, outputs that stay there.

batch ─► [device] ─► run ─► [device] ─► the next model.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from core.backend import Device
from core.devices import dlpack
from core.dtypes import DataType


class Place(NamedTuple):
    """A device with its names in ONNX Runtime and in DLPack.

    name     device name of an IOBinding: "cuda"
    kind     DLDeviceType
    number   device number
    """

    name: str
    kind: int
    number: int

    @property
    def device(self) -> tuple[int, int]:
        return self.kind, self.number


def place_of(device: Device) -> Place | None:
    """Return the device on which an instance's session computes; None for the host."""
    return Place("cuda", dlpack.CUDA, device.id) if device.kind == "GPU" else None


class OnDevice:
    """An output in device memory of ONNX Runtime, exported by DLPack.

    It replaces the OrtValue, which exports BOOL as UINT8 and has no DLPack in Python in older versions.
    The memory lives as long as this object and every capsule made from it.
    """

    def __init__(self, value: Any, dtype: DataType, place: Place):
        self.shape = tuple(value.shape())
        self.dtype = dtype.numpy
        self._dtype = dtype
        self._value = value
        self._place = place

    def get(self) -> np.ndarray:
        """Return a copy in host memory."""
        return np.asarray(self._value.numpy())

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._place.device

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None) -> Any:
        # The run has waited for the device: the array is complete, whatever the stream.
        address = self._value.data_ptr()
        return dlpack.lend(address, self._dtype, self.shape, self._place.device, self._value)


def gathered(arrays: list[Any], number: int) -> Any:
    """Join arrays of the host and of devices along the first dimension, on GPU `number`, with CuPy.

    Returns NotImplemented without CuPy, for BF16, which CuPy lacks, and for arrays that CuPy cannot read.
    Blocks until the copy is complete, because the session uses another stream.
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
