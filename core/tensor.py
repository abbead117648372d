"""Tensor: one named array, as bytes or as numpy, whichever it came as.

A frontend makes tensors from wire bytes, a backend from arrays; the other form is made once, when
somebody asks for it. So a request whose bytes are only copied on is never parsed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from core import dtypes
from core.dtypes import DataType
from core.errors import invalid
from core.native import strings
from core.native.arrays import flat, view

Buffer = Any  # bytes, bytearray, memoryview or another object with the buffer protocol


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
        """A tensor of an array: numpy, or anything with `__dlpack__` on the host.

        dtype   needed for BF16 bit patterns in uint16; else it follows from the array.
        Raises CoreError(INVALID) for an array type that the protocol does not have.
        """
        if not isinstance(array, np.ndarray):
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
        if self._raw is None:
            array = self._array
            assert array is not None
            if self.dtype is dtypes.BYTES:
                self._raw = strings.encode(array)
            else:
                self._raw = flat(array, self.dtype.numpy)
        return self._raw

    @property
    def array(self) -> np.ndarray:
        """The numpy form, of `shape`; read-only when it views wire bytes."""
        if self._array is None:
            if self.dtype is dtypes.BYTES:
                self._array = strings.decode(self._raw, self.count).reshape(self.shape)
            else:
                assert self._raw is not None
                self._array = view(self._raw, self.dtype.numpy, self.shape)
        return self._array

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


def made_tensor(
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


def _bytes_only(array: np.ndarray) -> np.ndarray:
    """An array of text as an object array whose elements are all `bytes`."""
    items = array.ravel().tolist()
    if array.dtype == object and all(type(item) is bytes for item in items):
        return array
    return strings.decode(strings.encode(array), len(items)).reshape(array.shape)
