"""Tensors on GPUs that a child gets from the server, and gives it, without their coming to the host.

Only in children to whom the server has said that it has GPUs; others do not import this.
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

Entry = tuple[Any, ...]  # name, number of the datatype, shape, bytes; LENT or LENT_AND_COPIED


class Lending:
    """What one model and the server lend each other. Any thread.

    staying   requests some of whose outputs may stay on a GPU: name → LENT, or LENT_AND_COPIED for one that
              is wanted in host memory, too. Until their last answer
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
        self._gpus = frozenset(map(bytes.fromhex, gpus))  # UUIDs of those that the server sees
        self.lender = outputs.lender = Lender()
        self.borrower = Borrower(inputs.released, True, came_back)
        self.staying: dict[Key, dict[str, int]] = {}
        self._said: set[str] = set()

    @staticmethod
    def gpus() -> list[str]:
        """UUIDs of the GPUs that this process sees, as JSON has them."""
        return [uuid.hex() for uuid in cuda.devices()]

    # from the server -------------------------------------------------------------

    def tensors(self, items: list[list[layout.Place]], region: Any) -> list[list[Tensor]]:
        """The tensors of each item. All that is lent is taken before anything can fail."""
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
        """The tensors of an INFERRED; taken when it comes, since perhaps nobody wants it any more."""
        _, size, _, _ = ANSWER.unpack_from(content)
        (answer,) = layout.answers(json.loads(content[ANSWER.size :]), size)
        places = answer.places if isinstance(answer, layout.Answer) else []
        return self.tensors([places], region)[0]

    # to the server ---------------------------------------------------------------

    def lends(self, staying: dict[str, int] | None = None) -> Lends:
        """For one message; `staying` as Lends has it."""
        return Lends(self, staying)

    def forget(self, batch: int) -> None:
        """All requests of a batch have had their last answers."""
        for key in [key for key in self.staying if key[0] == batch]:
            self.staying.pop(key, None)

    def lend(self, tensor: GpuTensor, how: int) -> tuple[int, Any] | None:
        """Number of the loan of a tensor, and what the region has of it; None if it goes by way of the host.

        TritonModelException if the model's work on it has failed.
        """
        found = self._place(tensor) if tensor._size else None
        if found is None:
            return None
        number, told = self.lender.lend(*found)
        if how == layout.LENT:
            return number, told.ljust(layout.LOAN_BYTES, b"\0")
        both = np.empty(layout.LOAN_BYTES + tensor._size, np.uint8)
        both[: LOAN.size] = np.frombuffer(told, np.uint8)
        try:
            both[layout.LOAN_BYTES :] = tensor._wire()
        except BaseException:
            self.lender.returned(number)
            raise
        return number, both

    def _place(self, tensor: GpuTensor) -> tuple[Place, Any] | None:
        """Where a tensor is, what keeps it there; the model's work on it is done."""
        memory = tensor._lender
        if isinstance(memory, LentMemory):  # handed on as it came
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
        """Once in the server's log."""
        if text not in self._said:
            self._said.add(text)
            self._host.log(LogLevel.WARNING, __file__, 0, text)


class Lends:
    """What one message lends: all of it, or nothing if it cannot be told.

    staying   outputs that may stay on a GPU: name → how; None for all
    """

    def __init__(self, lending: Lending, staying: dict[str, int] | None = None):
        self.staying = staying
        self.lending = lending
        self._numbers: list[int] = []

    def __call__(self, tensor: Any) -> tuple[Entry, Any] | None:
        """How a tensor on a GPU stands in a layout, and what its region has; None if it is to be copied."""
        staying = self.staying
        how = layout.LENT if staying is None else staying.get(tensor._name, 0)
        found = self.lending.lend(tensor, how) if how else None
        if found is None:
            return None
        number, data = found
        self._numbers.append(number)
        return (tensor._name, tensor._number, tensor._shape, len(data), how), data

    def undo(self) -> None:
        """Nobody will be told."""
        for number in self._numbers:
            self.lending.lender.returned(number)
        self._numbers.clear()
