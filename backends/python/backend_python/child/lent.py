"""Exchange tensors on GPUs between a child and the server, without copies to the host.

A child imports this module only if the server has GPUs.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

import numpy as np

from backend_python import layout
from backend_python.api import cuda, dlpack
from backend_python.api.gpu import GpuTensor, LentMemory
from backend_python.api.host import Host, Key
from backend_python.api.logger import LogLevel
from backend_python.api.tensor import Tensor, received
from backend_python.arena import Receiver, Sender
from backend_python.loans import LOAN, Borrower, Lender, Place, lendable
from backend_python.protocol import ANSWER

Entry = tuple[Any, ...]  # name, datatype number, shape, size in bytes; LENT or LENT_AND_COPIED


class Lending:
    """The loans of tensors between one model and the server. Thread-safe.

    staying   requests with outputs that may stay on a GPU: name → LENT, or LENT_AND_COPIED if the output is
              also needed in host memory. A request is removed with its last answer
    """

    def __init__(
        self,
        host: Host,
        inputs: Receiver,
        outputs: Sender,
        gpus: Collection[str],
        came_back: Any,
    ):
        self._host = host
        self._gpus = frozenset(map(bytes.fromhex, gpus))  # UUIDs of the GPUs that the server sees
        self.lender = outputs.lender = Lender()
        self.borrower = Borrower(inputs.released, True, came_back)
        self.staying: dict[Key, dict[str, int]] = {}
        self._said: set[str] = set()

    @staticmethod
    def gpus() -> list[str]:
        """Return the UUIDs of the GPUs that this process sees, in hexadecimal."""
        return [uuid.hex() for uuid in cuda.devices()]

    # from the server -------------------------------------------------------------

    def tensors(self, items: list[list[layout.Place]], region: Any) -> list[list[Tensor]]:
        """Return the tensors of each item. Take all loans first, so that a failure returns all of them."""
        loans = {
            place.start: self.borrower.take(bytes(region[place.start : place.start + LOAN.size]))
            for item in items
            for place in item
            if place.lent
        }
        return [
            [
                GpuTensor._borrowed(p.name, LentMemory(loans[p.start], p.number, p.shape))
                if p.lent
                else received(p.name, p.number, p.shape, region, p.start, p.size)
                for p in item
            ]
            for item in items
        ]

    def answered(self, content: bytes, region: Any) -> list[Tensor]:
        """Return the tensors of an INFERRED. Call it on arrival, because its caller may have ended."""
        _, size, _, _ = ANSWER.unpack_from(content)
        (answer,) = layout.answers(json.loads(content[ANSWER.size :]), size)
        places = answer.places if isinstance(answer, layout.Answer) else []
        return self.tensors([places], region)[0]

    # to the server ---------------------------------------------------------------

    def lends(self, staying: dict[str, int] | None = None) -> Lends:
        """Return a Lends for one message; it has no loans yet. For `staying` see Lends."""
        return Lends(self, staying)

    def forget(self, batch: int) -> None:
        """Remove the requests of a batch from `staying`, because the batch has failed."""
        for key in [key for key in self.staying if key[0] == batch]:
            self.staying.pop(key, None)

    def lend(self, tensor: GpuTensor, how: int) -> tuple[int, Any] | None:
        """Lend a tensor: return the loan's number and the data for the region; None if it must be copied.

        Raise TritonModelException if the model's work on the tensor has failed.
        """
        found = self._place(tensor) if tensor._size else None
        if found is None:
            return None
        number, loan = self.lender.lend(*found)
        if how == layout.LENT:
            return number, loan.ljust(layout.LOAN_BYTES, b"\0")
        both = np.empty(layout.LOAN_BYTES + tensor._size, np.uint8)
        both[: LOAN.size] = np.frombuffer(loan, np.uint8)
        try:
            both[layout.LOAN_BYTES :] = tensor._wire()
        except BaseException:
            self.lender.returned(number)
            raise
        return number, both

    def _place(self, tensor: GpuTensor) -> tuple[Place, Any] | None:
        """Return where a tensor is and the object that keeps its memory alive; None if it cannot be lent.

        If the memory is the model's own and on a GPU of the server, wait for the model's work on the tensor.
        """
        memory = tensor._lender
        if isinstance(memory, LentMemory):  # memory of the server: return it by its own handle
            return (memory.loan.place, tensor) if memory.loan.place.device in self._gpus else None
        kind, number = memory.device
        if kind not in (dlpack.CUDA, dlpack.CUDA_MANAGED):
            return None
        seen = cuda.devices()
        if number >= len(seen) or seen[number] not in self._gpus:
            return None
        cuda.wait(number)
        return lendable(memory.address, tensor._size, number, tensor, self._say)

    def _say(self, text: str) -> None:
        """Write a warning to the server's log, once for each text."""
        if text not in self._said:
            self._said.add(text)
            self._host.log(LogLevel.WARNING, __file__, 0, text)


class Lends:
    """The loans of one message. If the message is not sent, `undo` takes all of them back.

    staying   outputs that may stay on a GPU: name → LENT or LENT_AND_COPIED; None if each tensor may, as LENT
    """

    def __init__(self, lending: Lending, staying: dict[str, int] | None = None):
        self.staying = staying
        self.lending = lending
        self._numbers: list[int] = []

    def __call__(self, tensor: Any) -> tuple[Entry, Any] | None:
        """Lend a tensor on a GPU: return its layout entry and region data; None if it must be copied."""
        staying = self.staying
        how = layout.LENT if staying is None else staying.get(tensor._name, 0)
        found = self.lending.lend(tensor, how) if how else None
        if found is None:
            return None
        number, data = found
        self._numbers.append(number)
        return (tensor._name, tensor._number, tensor._shape, len(data), how), data

    def undo(self) -> None:
        """End the loans that were made for a message, because it will not be sent."""
        for number in self._numbers:
            self.lending.lender.returned(number)
        self._numbers.clear()
