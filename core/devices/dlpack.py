"""DLPack: exchange of arrays between libraries without a copy, on any device.

numpy alone is not enough: it has no BF16 and only host memory. Capsules have version 0.x, which `__dlpack__`
returns unless the caller asks for a newer one.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from core import dtypes
from core.dtypes import DataType
from core.native import dlpack as native

CPU, CUDA, CUDA_HOST, ROCM, ROCM_HOST, CUDA_MANAGED = 1, 2, 3, 10, 11, 13  # DLDeviceType
HOST_DEVICES = (CPU, CUDA_HOST, ROCM_HOST)  # memory that the CPU can read

# Datatype → DLDataTypeCode and bits, and back. BYTES has none.
_CODE_OF_KIND = {"i": 0, "u": 1, "f": 2, "b": 6}  # by the kind of a numpy type
_CODES = {
    dtype: (_CODE_OF_KIND[dtype.numpy.kind], 8 * dtype.byte_size)
    for dtype in dtypes.ALL
    if dtype is not dtypes.BYTES
} | {dtypes.BF16: (4, 16)}
_DTYPES = {code: dtype for dtype, code in _CODES.items()}
# Names of the array API, numpy, CuPy and JAX. PyTorch adds the prefix "torch.".
_NAMES: dict[DataType, str] = {dtype: dtype.numpy.name for dtype in _CODES} | {
    dtypes.BF16: "bfloat16"
}
_NAMED = {name: dtype for dtype, name in _NAMES.items()}


class ArrayInfo(NamedTuple):
    """What a capsule says about its array. The address is valid only as long as the array exists.

    address     of the first element
    steps       strides in elements; None for C order
    device      DLDeviceType and number of the device
    """

    dtype: DataType
    shape: tuple[int, ...]
    address: int
    steps: tuple[int, ...] | None
    device: tuple[int, int]

    @property
    def in_order(self) -> bool:
        """Return whether the elements are in C order, without gaps."""
        if self.steps is None or 0 in self.shape:
            return True
        step = 1
        for size, found in zip(reversed(self.shape), reversed(self.steps), strict=True):
            if size != 1 and found != step:
                return False
            step *= size
        return True


def array_info(capsule: Any) -> ArrayInfo:
    """Describe the array of a capsule without consuming it. Raises TypeError for an unsupported datatype."""
    kind, shape, steps, address, device = native.array_info(capsule)
    dtype = _DTYPES.get(kind[:2])
    if dtype is None or kind[2] != 1:
        raise TypeError(
            f"elements of DLPack type {kind[0]} with {kind[1]} bits and {kind[2]} lanes are of no "
            "datatype of the protocol"
        )
    return ArrayInfo(dtype, shape, address, steps, device)


def exported(array: Any) -> Any:
    """Return the capsule of an array, which must be completely computed: no stream is synchronised."""
    if int(array.__dlpack_device__()[0]) in (CUDA, ROCM, CUDA_MANAGED):
        return array.__dlpack__(stream=-1)
    return array.__dlpack__()


def described(array: Any) -> tuple[DataType, tuple[int, ...]]:
    """Return datatype and shape of an array with `__dlpack__`. Raises TypeError for an unsupported datatype.

    It prefers the attributes of the array API, since some arrays cannot be exported on every thread
    (PyTorch's only on a thread whose current device is theirs).
    """
    dtype, shape = getattr(array, "dtype", None), getattr(array, "shape", None)
    if dtype is None or shape is None or callable(shape):
        found = array_info(exported(array))
        return found.dtype, found.shape
    name = str(getattr(dtype, "name", dtype)).rpartition(".")[2]
    if name not in _NAMED:
        raise TypeError(f"elements of type {dtype} are of no datatype of the protocol")
    return _NAMED[name], tuple(int(size) for size in shape)


def name_of(dtype: DataType) -> str:
    """Return the name of a datatype in the array API."""
    return _NAMES[dtype]


def lend(
    address: int, dtype: DataType, shape: tuple[int, ...], device: tuple[int, int], owner: Any
) -> Any:
    """Return a capsule for memory in C order. It references `owner` until the consumer frees it."""
    return native.lend(address, _CODES[dtype], shape, device, owner)


class View:
    """A part of an array, or all of it with another shape, for arrays that cannot be sliced or reshaped.

    `from_dlpack` of any library creates an array from it.

    first   index of the first element of the view in `source`, which is in C order
    """

    def __init__(self, source: Any, dtype: DataType, shape: tuple[int, ...], first: int = 0):
        self.shape = shape
        self.dtype = name_of(dtype)
        self._source = source
        self._dtype = dtype
        self._first = first

    def __dlpack__(self, **how: Any) -> Any:
        capsule = self._source.__dlpack__(**how)
        found = array_info(capsule)
        if not found.in_order:
            raise BufferError(
                f"a {type(self._source).__name__} of shape {list(found.shape)} is not in C order: no "
                "view can be made of it"
            )
        address = found.address + self._first * self._dtype.byte_size
        return lend(address, self._dtype, self.shape, found.device, capsule)

    def get(self) -> np.ndarray:
        """Return a copy in host memory. It copies the whole source first."""
        count = math.prod(self.shape)
        whole = to_host(self._source).reshape(-1)
        return whole[self._first : self._first + count].reshape(self.shape)

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, number = self._source.__dlpack_device__()
        return int(kind), int(number)


class _Memory:
    """Host memory of a capsule, with the array interface of numpy."""

    def __init__(self, capsule: Any, found: ArrayInfo):
        self._capsule = capsule  # keeps the memory
        item = found.dtype.numpy.itemsize
        self.__array_interface__ = {
            "data": (found.address, True),
            "shape": found.shape,
            "strides": found.steps and tuple(step * item for step in found.steps),
            "typestr": found.dtype.numpy.str,
            "version": 3,
        }


def host_view(capsule: Any) -> np.ndarray:
    """Return a read-only numpy array over the host memory of a capsule. BF16 elements are bit patterns.

    Raises TypeError if the protocol has no such datatype.
    """
    found = array_info(capsule)
    if 0 in found.shape:
        return np.empty(found.shape, found.dtype.numpy)
    return np.asarray(_Memory(capsule, found))


def to_host(array: Any) -> np.ndarray:
    """Return the elements of an array in host memory. Blocks until the copy is complete; thread-safe.

    It tries `__dlpack__(dl_device=…, copy=…)` (array API 2023.12). If that fails, it uses the first of these
    that the array has: `get()` (CuPy), `cpu()` (PyTorch), `to_device("cpu")` (array API), `numpy()` (ONNX
    Runtime, TensorFlow), `__array__` (JAX). Raises TypeError if it has none, and what the one used raises.
    """
    try:
        return host_view(array.__dlpack__(dl_device=(CPU, 0), copy=True))
    except (TypeError, ValueError, BufferError, NotImplementedError, RuntimeError):
        pass  # the library is older, or cannot copy from this device
    if callable(getattr(array, "get", None)):
        return _patterns(np.asarray(array.get()))
    if callable(getattr(array, "cpu", None)):
        return host_view(exported(array.cpu()))
    if callable(getattr(array, "to_device", None)):
        return host_view(exported(array.to_device("cpu")))
    if callable(getattr(array, "numpy", None)):
        return _patterns(np.asarray(array.numpy()))
    if hasattr(array, "__array__"):
        return _patterns(np.asarray(array))
    raise TypeError(
        f"a {type(array).__module__}.{type(array).__name__} has no way to host memory: neither "
        "__dlpack__(dl_device=…) nor get(), cpu(), to_device(), numpy() or __array__"
    )


def _patterns(array: np.ndarray) -> np.ndarray:
    """Return a BF16 array of ml_dtypes as bit patterns, core's form of BF16; other arrays unchanged."""
    return array.view(dtypes.BF16.numpy) if array.dtype.name == "bfloat16" else array
