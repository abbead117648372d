"""Tensor: a named array, as bytes or as numpy. DeviceTensor: a tensor in the memory of a device.

A frontend creates tensors from wire bytes, a backend from arrays. The other form is created once, on first
use: bytes that are only passed on are never parsed.
"""

from __future__ import annotations

import math
from typing import Any

import cython
import numpy as np

from core import dtypes
from core.devices import dlpack
from core.devices.memory import DeviceMemory
from core.dtypes import ALL, BYTES, DataType
from core.errors import invalid
from core.native import strings
from core.native.arrays import flat, part, shape_of, view

Buffer = Any  # bytes, bytearray, memoryview or another object with the buffer protocol


@cython.freelist(128)  # four of each request of a batch
@cython.cclass
class Tensor:
    """A named tensor in C order.

    dtype   a DataType of core.dtypes
    shape   tuple of int; a scalar has (), a tensor without elements has a 0 in it
    raw     the wire form: little endian; BYTES as uint32 length + bytes for each element, row-major
    array   the numpy form; BYTES as an object array of `bytes`, BF16 as uint16 bit patterns

    The tensor keeps its buffer alive and never writes to it. Not thread-safe: one thread at a time.
    """

    def __init__(
        self,
        name: str,
        dtype: DataType,
        shape: tuple[int, ...],
        raw: Buffer | None = None,
        array: np.ndarray | None = None,
    ):
        self.name = name
        self.dtype = dtype
        self.shape = shape
        self._raw = raw
        self._array = array

    @classmethod
    def of(cls, name: str, array: Any, dtype: DataType | None = None) -> Tensor:
        """Return a tensor of an array: numpy, or any object with `__dlpack__`. Device arrays are not copied.

        dtype   only for BF16 bit patterns in uint16; otherwise it follows from the array
        Raises CoreError(INVALID) for a datatype that the protocol does not have.
        """
        if not isinstance(array, np.ndarray):
            if is_on_device(array):
                return _device_tensor(name, array, dtype)
            array = np.from_dlpack(array) if hasattr(array, "__dlpack__") else np.asarray(array)
        found = dtype or dtypes.of_numpy(array.dtype)
        if found is None:
            raise invalid(
                f"tensor '{name}' has the numpy type {array.dtype}, which is no datatype of the "
                f"protocol; convert it to one of {', '.join(d.name for d in dtypes.ALL)}"
            )
        if found is dtypes.BYTES:
            array = _bytes_only(array)
        if found is dtypes.BF16 and array.dtype != found.numpy:
            array = array.view(found.numpy)
        return cls(name, found, array.shape, array=array)

    @property
    def count(self) -> int:
        """Return the number of elements; 1 for a scalar."""
        return math.prod(self.shape)

    @property
    def raw(self) -> Buffer:
        """Return the wire bytes: a flat, contiguous object with the buffer protocol."""
        return self._as_raw()

    def _as_raw(self) -> Buffer:
        """Return `raw`. Compiled code calls this, since a property is slower."""
        if self._raw is None:
            array = self._array
            assert array is not None
            if self.dtype is BYTES:
                self._raw = strings.encode(array)
            else:
                self._raw = flat(array, self.dtype.numpy)
        return self._raw

    @property
    def array(self) -> np.ndarray:
        """Return the numpy form, of `shape`; a view of wire bytes is writable only if they are."""
        return self._as_array()

    def _as_array(self) -> np.ndarray:
        """Return `array`. Compiled code calls this, since a property is slower."""
        if self._array is None:
            if self.dtype is BYTES:
                self._array = strings.decode(self._raw, self.count).reshape(self.shape)
            else:
                assert self._raw is not None
                self._array = view(self._raw, self.dtype.numpy, self.shape)
        return self._array

    @property
    def device(self) -> tuple[int, int] | None:
        """Return DLDeviceType and number of the device; None for host memory."""
        return None

    @property
    def value(self) -> Any:
        """Return the producer's array if it is on a device, else the numpy form."""
        return self.array

    @property
    def has_raw(self) -> bool:
        """Return whether the wire form exists already."""
        return self._raw is not None

    @property
    def byte_size(self) -> int:
        """Return the length of the wire form in bytes."""
        if self.dtype.byte_size:
            return self.count * self.dtype.byte_size
        return memoryview(self.raw).nbytes

    def reshaped(self, shape: tuple[int, ...]) -> Tensor:
        """Return a tensor with the same buffers and another shape."""
        array = None if self._array is None else self._array.reshape(shape)
        return Tensor(self.name, self.dtype, shape, self._raw, array)

    def renamed(self, name: str) -> Tensor:
        """Return a tensor with the same buffers and another name."""
        return Tensor(name, self.dtype, self.shape, self._raw, self._array)

    def __repr__(self) -> str:
        return f"Tensor({self.name!r}, {self.dtype.name}{list(self.shape)})"


class DeviceTensor(Tensor):
    """A tensor in the memory of a device. Create it with `Tensor.of`. Invariants:

    1. `value` never copies to the host. `array` and `raw` copy once for all tensors of one DeviceMemory.
    2. It keeps its memory, so the array is valid as long as the tensor.

    first   first row of this tensor in the memory; -1 for the whole memory
    `array` and `raw` are thread-safe; use everything else on one thread at a time.
    """

    def __init__(
        self,
        name: str,
        dtype: DataType,
        shape: tuple[int, ...],
        memory: DeviceMemory,
        first: int = -1,
        rows: int = 0,
    ):
        super().__init__(name, dtype, shape)
        self.memory = memory
        self._first = first
        self._rows = rows
        self._value: Any = None
        self._wire: Buffer | None = None

    @property
    def device(self) -> tuple[int, int] | None:
        return self.memory.device

    @property
    def value(self) -> Any:
        """Return an array of `shape` on the device: the producer's array, or some rows or a view of that."""
        if self._value is None:
            self._value = self.memory.part(self._first, self._rows, self.shape)
        return self._value

    def _as_array(self) -> np.ndarray:
        """Return the numpy form, read-only, copied to the host on first use."""
        whole = self.memory.host(self.name)
        part = whole if self._first < 0 else whole[self._first : self._first + self._rows]
        return part.reshape(self.shape)

    def _as_raw(self) -> Buffer:
        if self._wire is None:
            self._wire = flat(self._as_array(), self.dtype.numpy)
        return self._wire

    @property
    def has_raw(self) -> bool:
        return self._wire is not None

    @property
    def byte_size(self) -> int:
        return self.count * self.dtype.byte_size

    def reshaped(self, shape: tuple[int, ...]) -> Tensor:
        return DeviceTensor(self.name, self.dtype, shape, self.memory, self._first, self._rows)

    def renamed(self, name: str) -> Tensor:
        return DeviceTensor(name, self.dtype, self.shape, self.memory, self._first, self._rows)

    def rows(self, first: int, count: int) -> Tensor:
        """Return `count` rows from row `first` on. This tensor must be the whole memory."""
        shape = (count, *self.shape[1:])
        return DeviceTensor(self.name, self.dtype, shape, self.memory, first, count)

    def on_host(self) -> Tensor:
        """Return an ordinary tensor with the same elements, which does not keep the device memory."""
        return new_tensor(self.name, self.dtype, self.shape, None, self.array)

    def __repr__(self) -> str:
        return f"DeviceTensor({self.name!r}, {self.dtype.name}{list(self.shape)} on {self.device})"


def is_on_device(value: Any) -> bool:
    """Return whether a value is an array that, by DLPack, is in memory that the host cannot read."""
    device_of = getattr(value, "__dlpack_device__", None)
    return device_of is not None and int(device_of()[0]) not in dlpack.HOST_DEVICES


def new_tensor(
    name: str,
    dtype: DataType,
    shape: tuple[int, ...],
    raw: Buffer | None,
    array: np.ndarray | None,
) -> Tensor:
    """Return Tensor(…), faster."""
    tensor: Tensor = Tensor.__new__(Tensor)
    tensor.name = name
    tensor.dtype = dtype
    tensor.shape = shape
    tensor._raw = raw
    tensor._array = array
    return tensor


def tensor_part(
    name: str, dtype: DataType, shape: tuple[int, ...], region: Buffer, start: int, size: int
) -> Tensor:
    """Return a tensor of `size` bytes of `region` from `start` on: of `bytes` a copy, else a view."""
    return new_tensor(name, dtype, shape, part(region, start, size), None)


def _device_tensor(name: str, array: Any, dtype: DataType | None) -> DeviceTensor:
    """Return a tensor of an array that is on a device.

    dtype   BF16 for an array of its bit patterns; otherwise it follows from the array
    Raises CoreError(INVALID) if DLPack cannot describe it, or the protocol does not have its datatype.
    """
    try:
        found, shape = dlpack.described(array)
    except Exception as error:
        raise invalid(
            f"tensor '{name}', a {type(array).__module__}.{type(array).__name__}, cannot be read as an "
            f"array of a device: {error}"
        ) from error
    if dtype is dtypes.BF16 and found is dtypes.UINT16:
        found = dtypes.BF16
    return DeviceTensor(name, found, shape, DeviceMemory(array, found, shape))


def array_tensor(name: str, number: int, array: np.ndarray) -> Tensor:
    """Return a tensor of an array with the numpy type of datatype `number`, which is not BYTES."""
    return new_tensor(name, ALL[number - 1], shape_of(array), None, array)


def _bytes_only(array: np.ndarray) -> np.ndarray:
    """Return an array of strings as an object array of `bytes`; the same array if it already is one."""
    items = array.ravel().tolist()
    if array.dtype == object and all(type(item) is bytes for item in items):
        return array
    return strings.decode(strings.encode(array), len(items)).reshape(array.shape)
