"""MemoryBuffer: the memory of a tensor, which an object of the program or of the server owns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from core.devices import dlpack
from core.devices.dlpack import ArrayInfo
from tritonserver._api._enums import DLDeviceType, MemoryType
from tritonserver._api._errors import InvalidArgumentError

DeviceOrMemoryType = tuple[MemoryType, int] | MemoryType | tuple[DLDeviceType, int] | str
"""Where memory is: MemoryType.GPU, (MemoryType.GPU, 0), (DLDeviceType.kDLCUDA, 0), "gpu", "gpu:0"."""

_OF_DEVICE = {
    DLDeviceType.kDLCPU: MemoryType.CPU,
    DLDeviceType.kDLCUDAHost: MemoryType.CPU_PINNED,
    DLDeviceType.kDLCUDA: MemoryType.GPU,
}


@dataclass
class MemoryBuffer:
    """Memory of a tensor. It is valid as long as `owner` exists.

    data_ptr         address of the first byte
    memory_type_id   number of the device
    size             bytes
    """

    data_ptr: int
    memory_type: MemoryType
    memory_type_id: int
    size: int
    owner: Any

    @staticmethod
    def from_dlpack(owner: Any) -> MemoryBuffer:
        """Return the memory of an array, which is not copied.

        Raises InvalidArgumentError for an object without `__dlpack__`, a datatype that the server does not
        have, and an array that is not contiguous.
        """
        return buffer_of(owner, exported(owner))


def exported(value: Any) -> ArrayInfo:
    """Describe an array of any library. On CUDA, the default stream waits for the array first.

    Raises InvalidArgumentError if the value does not support DLPack, or has another datatype.
    """
    try:
        on_cuda = int(value.__dlpack_device__()[0]) == dlpack.CUDA
        return dlpack.array_info(value.__dlpack__(stream=1) if on_cuda else value.__dlpack__())
    except Exception as error:  # libraries raise different types
        raise InvalidArgumentError(
            f"a {type(value).__module__}.{type(value).__name__} does not support DLPack: {error}"
        ) from error


def buffer_of(owner: Any, found: ArrayInfo) -> MemoryBuffer:
    """Return the memory of an array that `exported` has described."""
    if not found.in_order:
        raise InvalidArgumentError(
            f"an array of shape {list(found.shape)} is not contiguous; only contiguous memory is supported"
        )
    kind = _OF_DEVICE.get(DLDeviceType(found.device[0]))
    if kind is None:
        raise InvalidArgumentError(
            f"memory of device {DLDeviceType(found.device[0]).name} is not supported; move the array to "
            "the host or to a CUDA device"
        )
    size = math.prod(found.shape) * found.dtype.byte_size
    return MemoryBuffer(found.address, kind, found.device[1], size, owner)


def place_of(given: DeviceOrMemoryType) -> tuple[MemoryType, int]:
    """Return (type of memory, number of the device). Raises InvalidArgumentError for anything else."""
    kind, number = given if isinstance(given, tuple) and len(given) == 2 else (given, 0)
    if isinstance(kind, str) and given is kind:
        name, colon, digits = kind.partition(":")
        found = MemoryType.__members__.get(name.upper())
        if found is not None and (digits.isdecimal() if colon else True):
            return found, int(digits or 0)
    elif isinstance(kind, MemoryType) and isinstance(number, int):
        return kind, number
    elif isinstance(kind, DLDeviceType) and isinstance(number, int) and kind in _OF_DEVICE:
        return _OF_DEVICE[kind], number
    raise InvalidArgumentError(
        f'memory type {given!r} is unknown; give a MemoryType, "cpu", "cpu_pinned", "gpu", "gpu:<number>" '
        "or (MemoryType, <number>)"
    )
