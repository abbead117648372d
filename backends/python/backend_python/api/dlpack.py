"""Export and import tensors by DLPack: host memory as arrays, GPU memory by its address.

It uses ctypes, because numpy's own DLPack has no BF16, and in older releases no BOOL and no read-only
arrays. The structures are those of dlpack.h, version 0.x: `DLManagedTensor`.
"""

from __future__ import annotations

import ctypes
from ctypes import pythonapi
from typing import Any

import numpy as np

from backend_python.api import datatypes
from backend_python.api.errors import TritonModelException

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13  # DLDeviceType; 3 is pinned host memory
_LEGACY_STREAM = 1  # argument of `__dlpack__`: CUDA's default stream waits for the producer's work

_INT, _UINT, _FLOAT, _BFLOAT, _BOOL = 0, 1, 2, 4, 6  # DLDataTypeCode

_CODES = {"i": _INT, "u": _UINT, "f": _FLOAT, "b": _BOOL}  # by numpy's kinds
_TYPES = {
    number: (_CODES[dtype.kind], 8 * dtype.itemsize)
    for number, dtype in datatypes.NUMPY.items()
    if dtype.kind in _CODES
}
_TYPES[datatypes.BF16] = (_BFLOAT, 16)
_NUMBERS = {code: number for number, code in _TYPES.items()}


class _Device(ctypes.Structure):
    _fields_ = [("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32)]


class _DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


# The consumer may call the deleter without the GIL: CFUNCTYPE takes it.
_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_Destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = [
        ("tensor", _Tensor),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", _Deleter),
    ]


_NAME, _USED = b"dltensor", b"used_dltensor"  # capsule names; CPython keeps only the pointer

_new = pythonapi.PyCapsule_New
_new.restype = ctypes.py_object
_new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, _Destructor]
_is_valid = pythonapi.PyCapsule_IsValid
_is_valid.restype = ctypes.c_int
_is_valid.argtypes = [ctypes.py_object, ctypes.c_char_p]
_pointer = pythonapi.PyCapsule_GetPointer
_pointer.restype = ctypes.c_void_p
_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_set_name = pythonapi.PyCapsule_SetName
_set_name.restype = ctypes.c_int
_set_name.argtypes = [ctypes.py_object, ctypes.c_char_p]
# By address: the destructor must take no reference to its capsule.
_is_valid_at = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", pythonapi)
)
_pointer_at = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", pythonapi)
)

# Exports in use by a consumer: address of the _Managed → it, its arrays and the tensor's memory.
_exported: dict[int, tuple[Any, ...]] = {}


def _delete(address: int) -> None:
    _exported.pop(address, None)


def _destroy(capsule: int) -> None:
    if _is_valid_at(capsule, _NAME):  # no consumer has renamed it
        _exported.pop(_pointer_at(capsule, _NAME), None)


_deleter = _Deleter(_delete)
_destructor = _Destructor(_destroy)


def export(array: np.ndarray[Any, Any], number: int) -> Any:
    """Return a capsule that shares the memory of a C-ordered array (BF16 as its bit patterns)."""
    item = array.itemsize
    steps = tuple(step // item for step in array.strides)
    return lend(array.ctypes.data, array.shape, steps, number, (CPU, 0), array)


def lend(
    address: int,
    shape: tuple[int, ...],
    steps: tuple[int, ...],
    number: int,
    device: tuple[int, int],
    owner: Any,
) -> Any:
    """Return a capsule of memory. It holds `owner`, which keeps the memory alive, until it is deleted.

    steps   stride of each dimension, in elements
    """
    code, bits = _TYPES[number]
    dims = (ctypes.c_int64 * len(shape))(*shape)
    strides = (ctypes.c_int64 * len(shape))(*steps)
    managed = _Managed()
    managed.tensor.data = address
    managed.tensor.device = _Device(*device)
    managed.tensor.ndim = len(shape)
    managed.tensor.dtype = _DataType(code, bits, 1)
    managed.tensor.shape = ctypes.cast(dims, ctypes.POINTER(ctypes.c_int64))
    managed.tensor.strides = ctypes.cast(strides, ctypes.POINTER(ctypes.c_int64))
    managed.deleter = _deleter
    at = ctypes.addressof(managed)
    _exported[at] = (managed, dims, strides, owner)
    return _new(at, _NAME, _destructor)


def capsule_of(memory: Any) -> Any:
    """Return a capsule of C-ordered memory: an object with number, shape, device and address as Borrowed."""
    steps: list[int] = []
    step = 1
    for dim in reversed(memory.shape):
        steps.insert(0, step)
        step *= dim
    return lend(memory.address, memory.shape, tuple(steps), memory.number, memory.device, memory)


class Borrowed:
    """A tensor of a producer. When this object is destroyed, the tensor is released.

    device    DLDeviceType and number of the device
    address   of the first element, 0 if there is none
    """

    def __init__(self, managed: _Managed, number: int):
        tensor = managed.tensor
        self._managed = managed
        self.number = number
        self.shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
        self.device = (int(tensor.device.device_type), int(tensor.device.device_id))
        empty = 0 in self.shape or not tensor.data
        self.address = 0 if empty else int(tensor.data + tensor.byte_offset)

    @property
    def on_host(self) -> bool:
        return self.device[0] in (CPU, CUDA_HOST)

    def array(self) -> np.ndarray[Any, Any]:
        """Return an array that shares host memory. BF16 as its bit patterns."""
        dtype = datatypes.NUMPY[self.number]
        if not self.address:
            return np.empty(self.shape, dtype)
        self.__array_interface__ = {
            "data": (self.address, False),
            "shape": self.shape,
            "typestr": dtype.str,
            "version": 3,
        }
        return np.asarray(self)

    def capsule(self) -> Any:
        """Return a capsule of the memory for another consumer."""
        return capsule_of(self)

    def __del__(self) -> None:
        if self._managed.deleter:
            self._managed.deleter(ctypes.addressof(self._managed))


def borrow(value: Any) -> Borrowed:
    """Take the tensor of a capsule, or of an object with `__dlpack__`.

    Raises TritonModelException for a used capsule, or an unsupported object, device, type or stride.
    """
    if type(value).__name__ != "PyCapsule":
        value = _capsule_of(value)
    if not _is_valid(value, _NAME):
        raise TritonModelException("DLPack capsule was used before: it can be read only once.")
    managed = _Managed.from_address(_pointer(value, _NAME))
    number = _check(managed.tensor)
    _set_name(value, _USED)
    return Borrowed(managed, number)


def _capsule_of(value: Any) -> Any:
    if not (hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__")):
        raise TritonModelException(
            "Provided tensor is not supported. Tensor must be a DLPack capsule "
            "or have `__dlpack__` and `__dlpack_device__` attributes"
        )
    device = int(value.__dlpack_device__()[0])
    _refuse_device(device)
    if device in (CUDA, CUDA_MANAGED):
        return value.__dlpack__(stream=_LEGACY_STREAM)
    if isinstance(value, np.ndarray) and not value.flags.writeable:
        value = value.copy()  # numpy does not lend a read-only array
    return value.__dlpack__()


def _check(tensor: _Tensor) -> int:
    _refuse_device(tensor.device.device_type)
    number = _NUMBERS.get((tensor.dtype.code, tensor.dtype.bits), 0)
    if not number or tensor.dtype.lanes != 1:
        raise TritonModelException(
            f"DLPack tensor has a data type that is not supported: code {tensor.dtype.code}, "
            f"{tensor.dtype.bits} bits, {tensor.dtype.lanes} lanes."
        )
    if not tensor.strides or 0 in tensor.shape[: tensor.ndim]:
        return number
    step = 1
    for i in reversed(range(tensor.ndim)):
        if tensor.shape[i] > 1 and tensor.strides[i] != step:
            raise TritonModelException(
                "DLPack tensor is not contiguous. Only contiguous DLPack tensors that are stored "
                "in C-Order are supported."
            )
        step *= tensor.shape[i]
    return number


def _refuse_device(device_type: int) -> None:
    if device_type not in (CPU, CUDA, CUDA_HOST, CUDA_MANAGED):
        raise TritonModelException(
            f"DLPack tensor is on a device (DLDeviceType {device_type}); copy it to host memory "
            "first, for example with `.cpu()`."
        )
