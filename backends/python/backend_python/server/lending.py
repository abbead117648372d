"""The server's side of the exchange of tensors on GPUs with a child, without copies to the host.

Connection ─► [Lending] ─► LOANs in a region ─► child … child ─► LOANs ─► [Lending] ─► DeviceTensor.

The server does not open memory that it only passes on from one child to another.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from backend_python import layout
from backend_python.api import cuda
from backend_python.arena import Receiver, Sender
from backend_python.loans import LOAN, Borrower, Lender, Loan, Place, lendable
from backend_python.protocol import ProtocolError
from core import dtypes
from core.devices import dlpack
from core.devices.memory import DeviceMemory
from core.devices.visible import gpus as visible_gpus
from core.dtypes import DataType
from core.output_memory import DevicePlace
from core.request import DeviceOutput, InferenceRequest, RequestedOutput
from core.tensor import DeviceTensor, Tensor

if TYPE_CHECKING:
    from backend_python.server.answers import AnswerLayout

logger = logging.getLogger("core")

Entry = tuple[Any, ...]  # name, datatype number, shape, size in bytes, LENT


def gpus() -> tuple[bytes, ...]:
    """Return the UUIDs of the GPUs whose tensors processes can share; empty if there are no GPUs."""
    return cuda.devices() if visible_gpus() else ()


class Lending:
    """The loans between the server and one child. Thread-safe, unless stated otherwise.

    name     name of the instance, for the log and for errors
    takes    UUIDs of the GPUs on which the model takes inputs without a copy; empty until it is initialized
    """

    def __init__(self, name: str, inputs: Sender, outputs: Receiver):
        self.name = name
        self.takes: frozenset[bytes] = frozenset()
        self.lender = inputs.lender = Lender()
        self.borrower = Borrower(outputs.released, False)
        self._said: set[str] = set()

    def close(self) -> None:
        """End all loans, because the child has ended.

        The server's memory that the child held may be freed. Reading a tensor that the child lent then
        raises TritonModelException.
        """
        self.borrower.lost = f"'{self.name}', whose process has ended"
        self.lender.close()

    # to the child ----------------------------------------------------------------

    def brings(self, requests: Iterable[InferenceRequest]) -> bool:
        """Return whether the model takes inputs on a GPU and any of these requests has one there."""
        return bool(self.takes) and any(
            type(tensor) is not Tensor for request in requests for tensor in request.inputs.values()
        )

    def lend(self, tensor: Tensor, takes: frozenset[bytes]) -> tuple[int, bytes] | None:
        """Lend a tensor, and return the loan's number and its packed LOAN.

        Return None if the tensor is empty or cannot be lent to the receiver; the caller then copies its
        bytes. This may wait for the device. It copies memory that other processes cannot open on the device.

        takes   UUIDs of the GPUs on which the receiver takes tensors
        """
        if type(tensor) is Tensor or tensor.device is None or not tensor.count:
            return None
        try:
            found = self._place(tensor)
        except Exception as error:  # libraries raise their own types; a copy needs no capsule
            self._say(f"tensors on device {tensor.device} are copied to host memory: {error}")
            return None
        if found is None or found[0].device not in takes:
            return None
        return self.lender.lend(*found)

    def _place(self, tensor: Tensor) -> tuple[Place, Any] | None:
        """Return where a tensor is and the object that keeps its memory alive; None if it cannot be lent."""
        array = tensor.value
        if isinstance(array, Remote):
            return array.place(), array
        kind, number = tensor.device or (0, 0)
        if kind not in (dlpack.CUDA, dlpack.CUDA_MANAGED):
            return None
        with cuda.current(number):  # PyTorch exports only tensors of the current device
            capsule = dlpack.exported(array)
        seen = dlpack.array_info(capsule)
        if not seen.in_order:
            return None
        return lendable(seen.address, tensor.byte_size, number, (capsule, array), self._say)

    def _say(self, text: str) -> None:
        """Log a warning, once for each text."""
        if text not in self._said:
            self._said.add(text)
            logger.warning("'%s': %s", self.name, text)

    @staticmethod
    def staying(requests: Sequence[InferenceRequest]) -> list[dict[str, int] | None] | None:
        """Return `_staying` of the outputs of each request; None if no output of any request may stay."""
        found = [_staying(request.outputs) if request.outputs else None for request in requests]
        return found if any(found) else None

    def lends(self, takes: frozenset[bytes], alignment: int) -> Lends:
        """Return a Lends that encodes the tensors of one message; it has no tensors yet."""
        return Lends(self, takes, alignment)

    # from the child --------------------------------------------------------------

    def borrow(self, answers: AnswerLayout, tensors: list[list[Tensor]]) -> None:
        """Replace those of `tensors` that are loans in the region by the GPU tensors that the child lends.

        Raise ProtocolError if a loan is malformed.
        """
        for i, j, place in answers.lent:
            tensors[i][j] = self.tensor(place, memoryview(tensors[i][j].raw))

    def tensor(self, place: layout.Place, data: memoryview) -> Tensor:
        """Return a tensor that the child lends. Raise ProtocolError if the loan is malformed.

        data   the tensor's bytes in the region: the loan, then the copy in host memory if the child sent one
        """
        dtype, shape = dtypes.BY_NUMBER[place.number], place.shape
        loan = self.borrower.take(data[: LOAN.size])
        array = Remote(loan, dtype, shape, loan.place.offset)
        if place.lent == layout.LENT:
            return DeviceTensor(place.name, dtype, shape, DeviceMemory(array, dtype, shape))
        host = np.frombuffer(data[layout.LOAN_BYTES :], dtype.numpy).reshape(shape)
        return DeviceTensor(place.name, dtype, shape, _Both(array, dtype, shape, host))


class _Both(DeviceMemory):
    """Device memory that the child sent together with a copy in host memory."""

    is_on_host = True

    def __init__(
        self, array: Any, dtype: DataType, shape: tuple[int, ...], host: np.ndarray[Any, Any]
    ):
        super().__init__(array, dtype, shape)
        self._copy = host

    def host(self, name: str) -> np.ndarray[Any, Any]:
        return self._copy


class Remote:
    """An array that a child lends, for any consumer of DLPack. It can be sliced and reshaped.

    The memory is opened in this process when `get` or `__dlpack__` first needs its address. These methods and
    `place` raise TritonModelException if the child has ended.
    """

    def __init__(self, loan: Loan, dtype: DataType, shape: tuple[int, ...], offset: int):
        size = math.prod(shape) * dtype.byte_size
        if offset + size > loan.place.size:
            raise ProtocolError(f"a loan of {loan.place.size} bytes has none at {offset + size}")
        self.dtype = dlpack.name_of(dtype)
        self.shape = shape
        self._loan = loan
        self._dtype = dtype
        self._offset = offset  # in the allocation

    def place(self) -> Place:
        """Return the Place of the array's memory, which another process can open.

        Raises TritonModelException if the process that lends the memory has ended.
        """
        self._loan.check()
        return self._loan.place._replace(offset=self._offset)

    @property
    def _address(self) -> int:
        return self._loan.address() + self._offset - self._loan.place.offset

    def get(self) -> np.ndarray[Any, Any]:
        """Return a copy of the array in host memory."""
        size = math.prod(self.shape) * self._dtype.byte_size
        found = cuda.copy_to_host(self._address, size, self._loan.device)
        return found.view(self._dtype.numpy).reshape(self.shape)

    def reshape(self, shape: tuple[int, ...]) -> Remote:
        return Remote(self._loan, self._dtype, shape, self._offset)

    def __getitem__(self, rows: slice) -> Remote:
        first, end, _ = rows.indices(self.shape[0])
        row = math.prod(self.shape[1:]) * self._dtype.byte_size
        shape = (max(0, end - first), *self.shape[1:])
        return Remote(self._loan, self._dtype, shape, self._offset + first * row)

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.CUDA, self._loan.device

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None) -> Any:
        # The child waited for its work on the array before it sent the loan.
        return dlpack.lend(self._address, self._dtype, self.shape, self.__dlpack_device__(), self)


def _staying(outputs: Iterable[RequestedOutput]) -> dict[str, int] | None:
    """Return the outputs that may stay on a GPU: name → LENT or LENT_AND_COPIED; None if none may."""
    found = {}
    for output in outputs:
        if isinstance(output, DeviceOutput):
            found[output.name] = layout.LENT_AND_COPIED if output.host else layout.LENT
        elif isinstance(output.memory, DevicePlace) and not output.class_count:
            found[output.name] = layout.LENT
    return found or None


class Lends:
    """All tensors of one message, encoded for a child.

    A tensor on a GPU becomes a loan if the child takes tensors on that GPU and the memory can be lent. The
    bytes of every other tensor are copied. `entries` encodes tensors and fills the attributes.

    Not thread-safe: use it from one thread only.

    parts    for each tensor its loan or its bytes, without the padding between them
    size     size of the region in bytes, with the padding
    numbers  numbers of the loans; copied tensors have none
    """

    def __init__(self, lending: Lending, takes: frozenset[bytes], alignment: int):
        self.parts: list[Any] = []
        self.size = 0
        self.numbers: list[int] = []
        self._lending = lending
        self._takes = takes
        self._alignment = alignment

    def entries(self, tensors: Iterable[Tensor]) -> tuple[Entry, ...]:
        """Add tensors, and return their layout entries. If this raises, it has taken all loans back."""
        try:
            return tuple([self._entry(tensor) for tensor in tensors])
        except BaseException:
            for number in self.numbers:
                self._lending.lender.returned(number)
            self.numbers.clear()
            raise

    def _entry(self, tensor: Tensor) -> Entry:
        lent = self._lending.lend(tensor, self._takes)
        entry: Entry = (tensor.name, tensor.dtype.number, tensor.shape)
        if lent is None:
            data = tensor.raw
            entry = (*entry, memoryview(data).nbytes)
        else:
            self.numbers.append(lent[0])
            data = lent[1].ljust(layout.LOAN_BYTES, b"\0")
            entry = (*entry, layout.LOAN_BYTES, layout.LENT)
        self.parts.append(data)
        self.size += entry[3] + -entry[3] % self._alignment
        return entry
