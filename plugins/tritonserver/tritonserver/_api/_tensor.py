"""Tensor: datatype, shape and memory of an input or an output.

Object of the program ─► [Tensor] ─► core.Tensor ─► server ─► core.Tensor ─► [Tensor] ─► arrays, text
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from core import dtypes
from core.devices import dlpack
from core.native import strings
from core.tensor import Tensor as CoreTensor
from core.tensor import new_tensor
from tritonserver._api._devices import moved
from tritonserver._api._enums import DataType, DLDeviceType, MemoryType
from tritonserver._api._errors import InvalidArgumentError, UnsupportedError
from tritonserver._api._memorybuffer import (
    DeviceOrMemoryType,
    MemoryBuffer,
    buffer_of,
    exported,
    place_of,
)

_ON_HOST = (MemoryType.CPU, MemoryType.CPU_PINNED)
_NO_STREAM = (None, 0, -1)


@dataclass
class Tensor:
    """A tensor in C order.

    memory_buffer   the elements; for BYTES, each one's length in four bytes and then its bytes
    Any array library reads it without a copy: `numpy.from_dlpack(tensor)`, `torch.from_dlpack(tensor)`. BYTES
    have `to_bytes_array` and `to_string_array` instead.
    """

    data_type: DataType
    shape: Sequence[int]
    memory_buffer: MemoryBuffer

    @property
    def data_ptr(self) -> int:
        """Return the address of the first byte."""
        return self.memory_buffer.data_ptr

    @property
    def memory_type(self) -> MemoryType:
        return self.memory_buffer.memory_type

    @property
    def memory_type_id(self) -> int:
        return self.memory_buffer.memory_type_id

    @property
    def size(self) -> int:
        """Return the number of bytes."""
        return self.memory_buffer.size

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Return a capsule that keeps this tensor until its reader frees it.

        Raises UnsupportedError for BYTES, for a stream on the host, and for a copy or another device.
        """
        if self.data_type not in _DTYPES or self.data_type is DataType.BYTES:
            raise UnsupportedError(
                f"DLPack has no datatype {self.data_type.name}; call to_bytes_array() for text"
            )
        if copy or (dl_device is not None and tuple(dl_device) != tuple(self.__dlpack_device__())):
            raise UnsupportedError("DLPack export makes no copy; call to_device() first")
        if self.memory_type in _ON_HOST:
            if stream not in _NO_STREAM:
                raise UnsupportedError(f"memory type {self.memory_type} has no stream {stream!r}")
        elif hasattr(self.memory_buffer.owner, "__dlpack__"):
            self.memory_buffer.owner.__dlpack__(stream=stream)  # makes the stream wait
        return self._lent(_DTYPES[self.data_type], tuple(int(each) for each in self.shape))

    def __dlpack_device__(self) -> tuple[DLDeviceType, int]:
        gpu = self.memory_type is MemoryType.GPU
        return (DLDeviceType.kDLCUDA if gpu else DLDeviceType.kDLCPU), self.memory_type_id

    def to_string_array(self) -> np.ndarray:
        """Return the elements of a BYTES tensor as an array of str, read as UTF-8.

        Raises InvalidArgumentError for other bytes, and as `to_bytes_array` does.
        """
        found = self.to_bytes_array()
        try:
            texts = [each.decode() for each in found.ravel().tolist()]
        except UnicodeDecodeError as error:
            raise InvalidArgumentError(f"the tensor is no text in UTF-8: {error}") from error
        return np.array(texts, np.str_).reshape(found.shape)

    def to_bytes_array(self) -> np.ndarray:
        """Return the elements of a BYTES tensor as an array of `bytes` objects, copied.

        Raises InvalidArgumentError for another datatype, or if the memory is not in the form of BYTES.
        """
        if self.data_type is not DataType.BYTES:
            raise InvalidArgumentError(f"the tensor is {self.data_type.name}, not BYTES")
        shape = tuple(int(each) for each in self.shape)
        try:
            return strings.decode(self._bytes(), math.prod(shape)).reshape(shape)
        except ValueError as error:
            raise InvalidArgumentError(
                f"the memory of the BYTES tensor is wrong: {error}"
            ) from error

    @staticmethod
    def from_string_array(string_array: list[str] | np.ndarray) -> Tensor:
        """Return a BYTES tensor of text. Raises InvalidArgumentError for other elements."""
        return Tensor.from_bytes_array(string_array)

    @staticmethod
    def from_bytes_array(bytes_array: list[str] | list[bytes] | np.ndarray) -> Tensor:
        """Return a BYTES tensor of str or bytes, which are copied; str as UTF-8.

        Raises InvalidArgumentError for other elements.
        """
        found = Tensor._from_object(bytes_array)
        if found.data_type is not DataType.BYTES:
            raise InvalidArgumentError(
                f"the elements are {found.data_type.name}; a BYTES tensor is made of str or bytes"
            )
        return found

    @staticmethod
    def from_dlpack(obj: Any) -> Tensor:
        """Return a tensor of an array of any library, which is not copied and must not change meanwhile.

        Raises InvalidArgumentError for a value that does not support DLPack or is not contiguous.
        """
        info = exported(obj)
        return Tensor(DataType(info.dtype.number), list(info.shape), buffer_of(obj, info))

    def to_host(self) -> Tensor:
        """Return the tensor in host memory: itself if it is there."""
        return self.to_device("cpu")

    def to_device(self, device: DeviceOrMemoryType) -> Tensor:
        """Return the tensor in memory of another kind: itself if it is there, else a copy.

        To a GPU, CuPy or PyTorch copies. Raises InvalidArgumentError for an unknown place, UnsupportedError
        if neither library is installed.
        """
        place = place_of(device)
        if place == (self.memory_type, self.memory_type_id):
            return self
        if self.memory_type is MemoryType.CPU_PINNED and place[0] is MemoryType.CPU:
            return self
        raw = Tensor(DataType.UINT8, [self.size], self.memory_buffer)  # BYTES and BF16 too
        found = Tensor.from_dlpack(moved(raw, place))
        return Tensor(self.data_type, self.shape, found.memory_buffer)

    @staticmethod
    def _from_object(obj: Any) -> Tensor:
        """Return a tensor of a list, a numpy array, or any object with `__dlpack__`.

        Raises InvalidArgumentError for another value.
        """
        if isinstance(obj, list):
            try:
                obj = np.array(obj)
            except ValueError as error:
                raise InvalidArgumentError(f"the list cannot become a tensor: {error}") from error
        if isinstance(obj, np.ndarray | np.generic):
            return _of_numpy(np.asarray(obj))
        if hasattr(obj, "__dlpack__"):
            return Tensor.from_dlpack(obj)
        raise InvalidArgumentError(
            f"a {type(obj).__module__}.{type(obj).__name__} cannot become a tensor; give a list, a numpy "
            "array or an array with __dlpack__"
        )

    def _lent(self, dtype: dtypes.DataType, shape: tuple[int, ...]) -> Any:
        return dlpack.lend(self.data_ptr, dtype, shape, self.__dlpack_device__(), self)

    def _bytes(self) -> np.ndarray:
        """Return the memory as UINT8[size], read-only, on the host."""
        host = self.to_host()
        return dlpack.host_view(host._lent(dtypes.UINT8, (host.size,)))

    def _as_core(self, name: str) -> CoreTensor:
        """Return the tensor as core's. Raises InvalidArgumentError if memory and shape do not fit."""
        dtype = _DTYPES.get(self.data_type)
        if dtype is None:
            raise InvalidArgumentError(f"input '{name}' has datatype {self.data_type.name}")
        shape = tuple(int(each) for each in self.shape)
        count = math.prod(shape)
        if dtype is dtypes.BYTES:
            raw = self._bytes()
            if strings.count(raw) != (count, 0):
                raise InvalidArgumentError(
                    f"input '{name}' is BYTES{list(shape)}, its memory of {self.size} bytes holds "
                    f"{strings.count(raw)[0]} elements, expected {count}"
                )
            return new_tensor(name, dtype, shape, raw.data, None)
        if self.size != count * dtype.byte_size:
            raise InvalidArgumentError(
                f"input '{name}' is {dtype.name}{list(shape)}, its memory has {self.size} bytes, expected "
                f"{count * dtype.byte_size}"
            )
        if self.memory_type is MemoryType.GPU:
            return CoreTensor.of(name, self, dtype)
        return new_tensor(name, dtype, shape, None, dlpack.host_view(self._lent(dtype, shape)))


_DTYPES = {DataType(each.number): each for each in dtypes.ALL}


def _of_numpy(array: np.ndarray) -> Tensor:
    """Return a tensor of a numpy array, which is copied only if it is not contiguous or is text."""
    dtype = dtypes.of_numpy(array.dtype)
    if dtype is None:
        raise InvalidArgumentError(
            f"the numpy type {array.dtype} is no datatype of the server; convert the array to one of "
            f"{', '.join(each.name for each in dtypes.ALL)}"
        )
    shape = array.shape
    if dtype is dtypes.BYTES:
        array = np.frombuffer(strings.encode(array), np.uint8)
    else:
        array = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return Tensor(DataType(dtype.number), shape, _numpy_memory(array))


def _numpy_memory(array: np.ndarray) -> MemoryBuffer:
    """Return the memory of a contiguous array."""
    address = array.__array_interface__["data"][0]
    return MemoryBuffer(address, MemoryType.CPU, 0, array.nbytes, array)


def output_tensor(tensor: CoreTensor) -> Tensor:
    """Return an output of the server. Its memory may be written to: one that is shared is copied."""
    if tensor.device is not None:
        found = Tensor.from_dlpack(tensor.value)
        return Tensor(DataType(tensor.dtype.number), list(tensor.shape), found.memory_buffer)
    if tensor.dtype is dtypes.BYTES:
        array = np.frombuffer(tensor.raw, np.uint8)
    else:
        array = tensor.array
        if not (array.flags.c_contiguous and array.flags.writeable):
            array = array.copy(order="C")
    return Tensor(DataType(tensor.dtype.number), list(tensor.shape), _numpy_memory(array))
