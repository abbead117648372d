"""GpuTensor: a tensor of a model in GPU memory."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

from backend_python.api import cuda, datatypes, dlpack
from backend_python.api.errors import TritonModelException
from backend_python.api.tensor import Array, Buffer, Tensor

if TYPE_CHECKING:
    from backend_python.loans import Loan


class Memory(Protocol):
    """The memory of a tensor: a borrowed DLPack tensor, or memory that another process lends.

    number    datatype
    device    DLDeviceType and number of the device
    address   of the first element, 0 if there is none
    """

    number: int
    shape: tuple[int, ...]

    @property
    def device(self) -> tuple[int, int]: ...

    @property
    def address(self) -> int: ...

    def capsule(self) -> Any:
        """Return a DLPack capsule. It keeps the memory alive while it exists."""


class LentMemory:
    """A Memory that another process lends; the first access to `address` opens it."""

    __slots__ = ("loan", "number", "shape")

    def __init__(self, loan: Loan, number: int, shape: tuple[int, ...]):
        self.loan = loan
        self.number = number
        self.shape = shape

    @property
    def device(self) -> tuple[int, int]:
        return dlpack.CUDA, self.loan.device

    @property
    def address(self) -> int:
        return self.loan.address()

    def capsule(self) -> Any:
        return dlpack.capsule_of(self)


class GpuTensor(Tensor):
    """A tensor on a GPU: `Tensor.from_dlpack` made it, or the server passed it to the model.

    When it leaves the model, it stays on the GPU if its receiver takes GPU tensors. For other receivers it
    is copied to host memory.
    """

    __slots__ = ("_lender",)

    _lender: Memory

    @classmethod
    def _borrowed(cls, name: str, lender: Memory) -> GpuTensor:
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
        """Raises TritonModelException: numpy cannot represent GPU memory."""
        raise TritonModelException("Tensor is stored in GPU and cannot be converted to NumPy.")

    def to_dlpack(self) -> Any:
        """Return a DLPack capsule that shares the tensor's memory."""
        return self._lender.capsule()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._lender.device

    def _values(self) -> Array:
        found: Array = self._wire().view(datatypes.NUMPY[self._number])
        return found.reshape(self._shape)

    def _wire(self) -> Buffer:
        return cuda.copy_to_host(self._lender.address, self._size, self._lender.device[1])
