"""GpuTensor: a tensor that a model has in the memory of a GPU."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

from backend_python.api import cuda, datatypes, dlpack
from backend_python.api.errors import TritonModelException
from backend_python.api.tensor import Array, Buffer, Tensor

if TYPE_CHECKING:
    from backend_python.loans import Loan


class Memory(Protocol):
    """Where the elements of a tensor are: a DLPack tensor that is borrowed, or what another process lends.

    number    of the datatype
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
        """A DLPack capsule of the memory, which is kept as long as somebody holds that."""


class LentMemory:
    """Memory that another process lends; it is opened when the model first looks at it. A Memory."""

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
    """From `Tensor.from_dlpack`, or from another model. It stays where it is as long as those who get it take
    it there; for all others it is copied to host memory when it leaves the model."""

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
