"""DLPack: how libraries show one another the memory of their arrays, on any device.

Not by numpy alone, which knows no BF16 and no memory but the host's. Capsules are those of version 0.x: what
`__dlpack__` gives who asks for no newer one.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from core import dtypes
from core.dtypes import DataType
from core.native import dlpack as native

CPU, CUDA, CUDA_HOST, ROCM, ROCM_HOST, CUDA_MANAGED = 1, 2, 3, 10, 11, 13  # DLDeviceType
HOST_DEVICES = (CPU, CUDA_HOST, ROCM_HOST)  # what this process reads like its own memory

# DLDataTypeCode and bits → datatype; (6, 8) is DLPack's bool.
_DTYPES = {
    (6, 8): dtypes.BOOL,
    (1, 8): dtypes.UINT8,
    (1, 16): dtypes.UINT16,
    (1, 32): dtypes.UINT32,
    (1, 64): dtypes.UINT64,
    (0, 8): dtypes.INT8,
    (0, 16): dtypes.INT16,
    (0, 32): dtypes.INT32,
    (0, 64): dtypes.INT64,
    (2, 16): dtypes.FP16,
    (2, 32): dtypes.FP32,
    (2, 64): dtypes.FP64,
    (4, 16): dtypes.BF16,
}
_CODES = {dtype: code for code, dtype in _DTYPES.items()}
# As the array API names them, and numpy, CuPy, JAX; PyTorch has "torch." before.
_NAMED = {
    "bool": dtypes.BOOL,
    "uint8": dtypes.UINT8,
    "uint16": dtypes.UINT16,
    "uint32": dtypes.UINT32,
    "uint64": dtypes.UINT64,
    "int8": dtypes.INT8,
    "int16": dtypes.INT16,
    "int32": dtypes.INT32,
    "int64": dtypes.INT64,
    "float16": dtypes.FP16,
    "float32": dtypes.FP32,
    "float64": dtypes.FP64,
    "bfloat16": dtypes.BF16,
}


class Seen(NamedTuple):
    """What a capsule says of an array. The array must be kept as long as the address is used.

    address     of its first element
    steps       elements from one to the next in each dimension, None for C order
    device      DLDeviceType and number of the device
    """

    dtype: DataType
    shape: tuple[int, ...]
    address: int
    steps: tuple[int, ...] | None
    device: tuple[int, int]

    @property
    def in_order(self) -> bool:
        """Whether the elements lie in C order, without gaps."""
        if self.steps is None or 0 in self.shape:
            return True
        step = 1
        for size, found in zip(reversed(self.shape), reversed(self.steps), strict=True):
            if size != 1 and found != step:
                return False
            step *= size
        return True


def seen(capsule: Any) -> Seen:
    """What a capsule says; it is not taken. TypeError for a datatype that the protocol does not have."""
    kind, shape, steps, address, device = native.seen(capsule)
    dtype = _DTYPES.get(kind[:2])
    if dtype is None or kind[2] != 1:
        raise TypeError(
            f"elements of DLPack type {kind[0]} with {kind[1]} bits and {kind[2]} lanes are of no "
            "datatype of the protocol"
        )
    return Seen(dtype, shape, address, steps, device)


def exported(array: Any) -> Any:
    """The capsule of an array, whose work is done already: nothing is synchronised."""
    if int(array.__dlpack_device__()[0]) in (CUDA, ROCM, CUDA_MANAGED):
        return array.__dlpack__(stream=-1)
    return array.__dlpack__()


def described(array: Any) -> tuple[DataType, tuple[int, ...]]:
    """Datatype and shape of an array with `__dlpack__`. TypeError for an unknown datatype.

    By its own words where it has the attributes of the array API: not every array lets itself be exported on
    every thread (PyTorch's do on a thread whose current device is theirs).
    """
    dtype, shape = getattr(array, "dtype", None), getattr(array, "shape", None)
    if dtype is None or shape is None or callable(shape):
        found = seen(exported(array))
        return found.dtype, found.shape
    name = str(getattr(dtype, "name", dtype)).rpartition(".")[2]
    if name not in _NAMED:
        raise TypeError(f"elements of type {dtype} are of no datatype of the protocol")
    return _NAMED[name], tuple(int(size) for size in shape)


def name_of(dtype: DataType) -> str:
    """As the array API names a datatype that DLPack has."""
    return next(name for name, found in _NAMED.items() if found is dtype)


def lend(
    address: int, dtype: DataType, shape: tuple[int, ...], device: tuple[int, int], owner: Any
) -> Any:
    """A capsule of memory in C order that `owner` keeps; held until its consumer lets go."""
    return native.lend(address, _CODES[dtype], shape, device, owner)


class View:
    """A part of another array's memory, or the whole under another shape, for arrays that have no such
    operation themselves. An array of any library can be made of it by `from_dlpack`.

    first   element of `source`, which is in C order, that is the first of the view
    """

    def __init__(self, source: Any, dtype: DataType, shape: tuple[int, ...], first: int = 0):
        self.shape = shape
        self.dtype = name_of(dtype)
        self._source = source
        self._dtype = dtype
        self._first = first

    def __dlpack__(self, **how: Any) -> Any:
        capsule = self._source.__dlpack__(**how)
        found = seen(capsule)
        if not found.in_order:
            raise BufferError(
                f"a {type(self._source).__name__} of shape {list(found.shape)} is not in C order: no "
                "view can be made of it"
            )
        address = found.address + self._first * self._dtype.byte_size
        return lend(address, self._dtype, self.shape, found.device, capsule)

    def get(self) -> np.ndarray:
        """A copy in host memory, of a copy of all of the source."""
        count = math.prod(self.shape)
        whole = to_host(self._source).reshape(-1)
        return whole[self._first : self._first + count].reshape(self.shape)

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, number = self._source.__dlpack_device__()
        return int(kind), int(number)


class _Memory:
    """Host memory of a capsule, for numpy."""

    def __init__(self, capsule: Any, found: Seen):
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
    """A read-only array over host memory; BF16 as its bit patterns. Raises TypeError as `seen`."""
    found = seen(capsule)
    if 0 in found.shape:
        return np.empty(found.shape, found.dtype.numpy)
    return np.asarray(_Memory(capsule, found))


def to_host(array: Any) -> np.ndarray:
    """A copy of an array in host memory. Blocks until it is there; any thread.

    By what the array has, in this order: `__dlpack__(dl_device=…, copy=…)` (array API 2023.12), `get()`
    (CuPy), `cpu()` (PyTorch), `to_device("cpu")` (array API), `numpy()` (ONNX Runtime, TensorFlow),
    `__array__` (JAX). Raises TypeError if it has none of these, and what they raise.
    """
    try:
        return host_view(array.__dlpack__(dl_device=(CPU, 0), copy=True))
    except (TypeError, ValueError, BufferError, NotImplementedError, RuntimeError):
        pass  # older than that, or without a way from this device
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
    """BF16 of a numpy that has been taught it as its bit patterns, as everywhere in core."""
    return array.view(dtypes.BF16.numpy) if array.dtype.name == "bfloat16" else array
