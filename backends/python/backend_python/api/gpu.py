"""GpuTensor: a tensor that a model has in the memory of a GPU."""

from __future__ import annotations

import math
from typing import Any

from backend_python.api import cuda, datatypes
from backend_python.api.dlpack import Borrowed
from backend_python.api.errors import TritonModelException
from backend_python.api.tensor import Array, Buffer, Tensor


class GpuTensor(Tensor):
    """From `Tensor.from_dlpack`. It stays where it is; when it leaves the model, as an answer or with a
    call of another model, it is copied to host memory."""

    __slots__ = ("_lender",)

    _lender: Borrowed

    @classmethod
    def _borrowed(cls, name: str, lender: Borrowed) -> GpuTensor:
        tensor = cls.__new__(cls)
        tensor._name = name
        tensor._number = lender.number
        tensor._shape = lender.shape
        tensor._array = None
        tensor._buffer = None
        tensor._size = datatypes.ITEM_SIZE[lender.number] * math.prod(lender.shape)
        tensor._start = 0
        tensor._lender = lender
        return tensor

    def _renamed(self, name: str) -> Tensor:
        return GpuTensor._borrowed(name, self._lender)

    def is_cpu(self) -> bool:
        return False

    def as_numpy(self) -> Array:
        """There is none of a GPU's memory: TritonModelException."""
        raise TritonModelException("Tensor is stored in GPU and cannot be converted to NumPy.")

    def to_dlpack(self) -> Any:
        """A DLPack capsule that shares the tensor's memory."""
        return self._lender.capsule()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._lender.device

    def _values(self) -> Array:
        found: Array = self._wire().view(datatypes.NUMPY[self._number])
        return found.reshape(self._shape)

    def _wire(self) -> Buffer:
        return cuda.copy_to_host(self._lender.address, self._size, self._lender.device[1])
