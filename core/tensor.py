"""Tensor: one named array, as bytes or as numpy, whichever it came as; DeviceTensor: one on a device.

A frontend makes tensors from wire bytes, a backend from arrays; the other form is made once, when
somebody asks for it. So a request whose bytes are only copied on is never parsed.
"""

from __future__ import annotations

import math
from typing import Any

import cython
import numpy as np

from core import dlpack, dtypes
from core.device_memory import DeviceMemory
from core.dtypes import ALL, BYTES, DataType
from core.errors import invalid
from core.native import strings
from core.native.arrays import flat, shape_of, view

Buffer = Any  # bytes, bytearray, memoryview or another object with the buffer protocol


@cython.freelist(128)  # four of each request of a batch
@cython.cclass
class Tensor:
    """A named tensor in C order.

    dtype   a DataType of core.dtypes
    shape   tuple of int; a scalar has (), a tensor without elements has a 0 in it
    raw     the wire form: little endian; BYTES as uint32 length + bytes for each element, row-major
    array   the numpy form; BYTES as an object array of `bytes`, BF16 as uint16 bit patterns

    The tensor keeps its buffer alive and never writes to it. Not locked: one thread at a time.
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
        """A tensor of an array: numpy, or anything with `__dlpack__`; on a device it stays there.

        dtype   needed for BF16 bit patterns in uint16; else it follows from the array.
        Raises CoreError(INVALID) for an array type that the protocol does not have.
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
        """Number of elements; 1 for a scalar."""
        return math.prod(self.shape)

    @property
    def raw(self) -> Buffer:
        """The wire bytes: a flat, contiguous object with the buffer protocol."""
        return self._as_raw()

    def _as_raw(self) -> Buffer:
        """`raw`, for who is compiled: an attribute that is made costs a look into its type."""
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
        """The numpy form, of `shape`; read-only when it views wire bytes."""
        return self._as_array()

    def _as_array(self) -> np.ndarray:
        """`array`, for who is compiled."""
        if self._array is None:
            if self.dtype is BYTES:
                self._array = strings.decode(self._raw, self.count).reshape(self.shape)
            else:
                assert self._raw is not None
                self._array = view(self._raw, self.dtype.numpy, self.shape)
        return self._array

    @property
    def device(self) -> tuple[int, int] | None:
        """Where the elements are: None for host memory, else DLDeviceType and number of the device."""
        return None

    @property
    def value(self) -> Any:
        """The array where it is: what its producer gave, on a device; else the numpy form."""
        return self.array

    @property
    def has_raw(self) -> bool:
        """Whether the wire form is there without work."""
        return self._raw is not None

    @property
    def byte_size(self) -> int:
        """Length of the wire form."""
        if self.dtype.byte_size:
            return self.count * self.dtype.byte_size
        return memoryview(self.raw).nbytes

    def reshaped(self, shape: tuple[int, ...]) -> Tensor:
        """The same elements under another shape; shares the buffers."""
        array = None if self._array is None else self._array.reshape(shape)
        return Tensor(self.name, self.dtype, shape, self._raw, array)

    def renamed(self, name: str) -> Tensor:
        """The same tensor under another name; shares the buffers."""
        return Tensor(name, self.dtype, self.shape, self._raw, self._array)

    def __repr__(self) -> str:
        return f"Tensor({self.name!r}, {self.dtype.name}{list(self.shape)})"


class DeviceTensor(Tensor):
    """A tensor whose elements are in the memory of a device. Made by `Tensor.of`. Invariants:

    1. `value` never copies to the host. `array` and `raw` do, once for all tensors of one memory.
    2. It keeps its memory: whoever has the tensor may use the array.

    first   row of the memory that is the first of this tensor, -1 for all of it
    Any thread may ask for `array` and `raw`; else as Tensor.
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
        """The array on the device, of `shape`: what the producer gave, or its rows, or a view of it."""
        if self._value is None:
            self._value = self.memory.part(self._first, self._rows, self.shape)
        return self._value

    def _as_array(self) -> np.ndarray:
        """The numpy form, read-only: copied to the host when somebody first asks."""
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
        """`count` rows of a tensor that is a whole memory, from row `first` on."""
        shape = (count, *self.shape[1:])
        return DeviceTensor(self.name, self.dtype, shape, self.memory, first, count)

    def on_host(self) -> Tensor:
        """The same elements as an ordinary tensor, which does not keep the memory of the device."""
        return new_tensor(self.name, self.dtype, self.shape, None, self.array)

    def __repr__(self) -> str:
        return f"DeviceTensor({self.name!r}, {self.dtype.name}{list(self.shape)} on {self.device})"


def is_on_device(value: Any) -> bool:
    """Whether a value is an array in memory that the host cannot read, as it says by DLPack."""
    tell = getattr(value, "__dlpack_device__", None)
    return tell is not None and int(tell()[0]) not in dlpack.HOST_DEVICES


def new_tensor(
    name: str,
    dtype: DataType,
    shape: tuple[int, ...],
    raw: Buffer | None,
    array: np.ndarray | None,
) -> Tensor:
    """Tensor(…) for who makes one for every request."""
    tensor: Tensor = Tensor.__new__(Tensor)
    tensor.name = name
    tensor.dtype = dtype
    tensor.shape = shape
    tensor._raw = raw
    tensor._array = array
    return tensor


def _device_tensor(name: str, array: Any, dtype: DataType | None) -> DeviceTensor:
    """A tensor of an array that is on a device.

    dtype   BF16 for an array of its bit patterns; else it follows from the array
    Raises CoreError(INVALID) for elements that the protocol does not have.
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
    """A tensor of an array that is what the datatype of that number has, which is not BYTES."""
    return new_tensor(name, ALL[number - 1], shape_of(array), None, array)


def _bytes_only(array: np.ndarray) -> np.ndarray:
    """An array of text as an object array whose elements are all `bytes`."""
    items = array.ravel().tolist()
    if array.dtype == object and all(type(item) is bytes for item in items):
        return array
    return strings.decode(strings.encode(array), len(items)).reshape(array.shape)
