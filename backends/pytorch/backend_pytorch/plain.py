"""The straight way of models on the host that take and give numbers: one call of torch for each tensor.

batch ─► [PlainRun] ─► core.  In the place of the general way, where open() finds that nothing has to be
converted, moved or spread over requests; which is so of nearly every model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from backend_pytorch.program import Program, torch_dtype_of
from core import dtypes
from core.batch import Batch
from core.dtypes import DataType

_CONVERTED = (dtypes.BYTES, dtypes.BF16)  # what numpy has otherwise, or not at all


class PlainRun:
    """One instance's, whose runs never overlap.

    takes       input → index among the arguments
    gives       output → index among the results
    datatypes   output → its datatype
    inference   whether torch is in inference mode while it runs, else it only makes no gradients
    """

    def __init__(
        self,
        program: Program,
        takes: dict[str, int],
        gives: dict[str, int],
        datatypes: dict[str, DataType],
        *,
        inference: bool,
    ):
        self._program = program
        self._takes = takes
        self._gives = {
            name: (index, torch_dtype_of(datatypes[name])) for name, index in gives.items()
        }
        self._defaults = [port.default for port in program.takes or ()]
        self._tensor: Callable[[np.ndarray], Any]
        self._tensor = _tensor_to_write_to if program.writes_inputs else _tensor
        self._copies = program.keeps_outputs
        self.guard = torch.inference_mode() if inference else torch.no_grad()

    @staticmethod
    def can(*datatypes: DataType) -> bool:
        """Return whether numpy and torch have all of them alike."""
        return not any(each in _CONVERTED for each in datatypes)

    def __call__(self, batch: Batch) -> list[Any] | dict[str, Any]:
        """What the program gives for a batch. Within `guard`, as long as the result is looked at."""
        arguments = self._defaults.copy()
        for name in batch:
            arguments[self._takes[name]] = self._tensor(batch[name])
        return self._program.run(arguments)

    def arrays(self, found: list[Any] | dict[str, Any], names: list[str]) -> dict[str, Any] | None:
        """Name → array of what the program gave; None where one of them is anything but a tensor of the
        announced datatype, in order and with a dimension. That may be right all the same."""
        if type(found) is not list:
            return None
        arrays = {}
        for name in names:
            index, dtype = self._gives[name]
            if index >= len(found):
                return None
            tensor = found[index]
            if type(tensor) is not Tensor or tensor.dtype is not dtype:
                return None
            try:
                array = tensor.numpy()
            except (RuntimeError, TypeError):  # it has a gradient, a sign to be changed, a GPU
                return None
            if not array.ndim:
                return None
            arrays[name] = array.copy() if self._copies else array
        return arrays


def _tensor(array: np.ndarray) -> Any:
    if not array.flags.c_contiguous:  # it may go backwards, and torch has no such strides
        array = np.ascontiguousarray(array)
    return torch.from_numpy(array)


def _tensor_to_write_to(array: np.ndarray) -> Any:
    """Of a copy, where it is a view of a client's bytes."""
    return _tensor(array if array.flags.writeable else array.copy())
