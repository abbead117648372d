"""Tensor: a named array of a request or a response."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from backend_python import strings
from backend_python.api import datatypes
from backend_python.api.arguments import text
from backend_python.api.datatypes import BF16, BYTES, array_of, plain_number
from backend_python.api.errors import TritonModelException

if TYPE_CHECKING:
    import cython
else:
    from backend_python import uncompiled as cython

Array = np.ndarray[Any, Any]
Buffer = Any  # an object with the buffer protocol


@cython.freelist(64)
@cython.cclass
class Tensor:
    """A named tensor, in C order; in host memory, except GpuTensor.

    Made from a numpy array (shared, not copied, if it is contiguous), a DLPack tensor, or bytes from the
    channel, which become an array at the first access. BYTES are object arrays of `bytes` (str is encoded
    as UTF-8) or numpy `S` arrays; BF16 has no numpy form.
    """

    _name: str
    _number: int  # of the datatype
    _array: Array | None  # BF16 as uint16
    # The wire form: bytes _start to _start + _size of a buffer; None if made from an array. The next three
    # fields have values only with a buffer, or on a GPU.
    _buffer: Buffer
    _shape: tuple[int, ...]  # unused after `_array` is set
    _start: int
    _size: int

    def __init__(self, name: str, numpy_array: Array, /):
        self._number = plain_number(numpy_array)
        if not self._number or type(name) is not str or not name:
            name = _checked(name, numpy_array)
            self._number, numpy_array = _plain(numpy_array)
        self._name = name
        self._array = numpy_array
        self._buffer = None

    @staticmethod
    def from_dlpack(name: str, tensor: Any, /) -> Tensor:
        """Return a tensor that shares the memory of a DLPack capsule or an object with `__dlpack__`."""
        name = text("from_dlpack(): the name", name)
        if not name:
            raise TritonModelException("Tensor name cannot be an empty string.")
        if isinstance(tensor, Tensor):
            return tensor._renamed(name)
        from backend_python.api import dlpack  # ctypes: imported only by models that use DLPack

        borrowed = dlpack.borrow(tensor)
        if borrowed.on_host:
            return shared(name, borrowed.number, borrowed.array())
        from backend_python.api.gpu import GpuTensor

        return GpuTensor._borrowed(name, borrowed)

    def name(self) -> str:
        return self._name

    def shape(self) -> list[int]:
        """Return the dimensions, including the batch dimension."""
        return list(self._dims())

    def triton_dtype(self) -> int:
        """Return the number of the datatype: 1 for BOOL … 13 for BYTES, 14 for BF16."""
        return self._number

    def is_cpu(self) -> bool:
        """Return whether the tensor is in host memory."""
        return True

    def as_numpy(self) -> Array:
        """Return the tensor as a numpy array. Raises TritonModelException for BF16."""
        if self._number == BF16:
            raise TritonModelException(
                "Tensor dtype is BF16 and cannot be converted to NumPy. "
                "Use to_dlpack() and from_dlpack() instead."
            )
        array = self._array
        return self._values() if array is None else array

    def to_dlpack(self) -> Any:
        """Return a DLPack capsule that shares the tensor's memory. Raises TritonModelException for BYTES."""
        if self._number == BYTES:
            raise TritonModelException("DLPack does not have support for string tensors.")
        from backend_python.api import dlpack

        return dlpack.export(self._values(), self._number)

    def __dlpack__(self, stream: Any = None, **_: Any) -> Any:
        return self.to_dlpack()  # host memory: there is no stream to wait for

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def _dims(self) -> tuple[int, ...]:
        return self._shape if self._array is None else self._array.shape

    def _values(self) -> Array:
        if self._array is None:
            if self._number == BYTES:
                flat = strings.decode(self._wire(), math.prod(self._shape))
                self._array = flat.reshape(self._shape)
            else:
                self._array = array_of(self._buffer, self._start, self._number, self._shape)
        return self._array

    def _wire(self) -> Buffer:
        """Return the flat, contiguous bytes that the sender writes into its arena."""
        if self._buffer is not None and (self._array is None or self._number != BYTES):
            return memoryview(self._buffer)[self._start : self._start + self._size]
        array = self._array
        assert array is not None
        if self._number == BYTES:
            return strings.encode(array)
        if array.ndim == 0 or array.size == 0:  # these have no byte view
            return array.tobytes()
        return memoryview(array).cast("B")  # type: ignore[arg-type]  # numpy 1.x has no stub for it

    def _renamed(self, name: str) -> Tensor:
        if self._buffer is not None:
            return received(name, self._number, self._shape, self._buffer, self._start, self._size)
        return shared(name, self._number, self._values())

    def __repr__(self) -> str:
        return f"Tensor({self._name!r}, datatype {self._number}, shape {self.shape()})"


def shared(name: str, number: int, array: Array) -> Tensor:
    """Return a tensor of an array in C order (BF16 as uint16), without checks."""
    tensor: Tensor = Tensor.__new__(Tensor)
    tensor._name = name
    tensor._number = number
    tensor._array = array
    tensor._buffer = None
    return tensor


def all_shared(arrays: list[tuple[str, int, Array]]) -> list[Tensor]:
    """Return a tensor for each (name, number of the datatype, array in C order), without checks."""
    tensors = []
    for name, number, array in arrays:
        tensors.append(shared(name, number, array))
    return tensors


def received(
    name: str, number: int, shape: tuple[int, ...], buffer: Buffer, start: int, size: int
) -> Tensor:
    """Return a tensor whose wire bytes are the `size` bytes of `buffer` from `start` on, without a copy."""
    tensor: Tensor = Tensor.__new__(Tensor)
    tensor._name = name
    tensor._number = number
    tensor._array = None
    tensor._buffer = buffer
    tensor._shape = shape
    tensor._start = start
    tensor._size = size
    return tensor


def _plain(array: Array) -> tuple[int, Array]:
    """Return the number of the datatype, and the array in C order. An array of BF16 becomes its bit patterns.

    Raises TritonModelException if the protocol has no datatype for the array.
    """
    number = datatypes.number_of(array.dtype)
    if not number:
        raise TritonModelException("NumPy dtype is not supported.")
    if number == BF16:
        array = array.view(np.uint16)
    return number, np.ascontiguousarray(array) if not array.flags.c_contiguous else array


def _checked(name: Any, array: Any) -> str:
    """Return the name. Raises TypeError for a wrong type, TritonModelException for an empty name."""
    if not isinstance(array, np.ndarray):
        raise TypeError(
            "Tensor() takes the name (str) and a numpy.ndarray, "
            f"found {type(name)} and {type(array)}"
        )
    found = text("Tensor(): the name", name)
    if not found:
        raise TritonModelException("Tensor name cannot be an empty string.")
    return found
