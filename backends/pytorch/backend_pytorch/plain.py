"""The fast path for models of numbers on the host: one call of torch for each tensor.

batch ─► [PlainRun] ─► core.  It replaces the general path if open() finds that nothing must be converted,
moved or split by request, as in most models.
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

_CONVERTED = (dtypes.BYTES, dtypes.BF16)  # datatypes that numpy represents differently, or lacks


class PlainRun:
    """Run a program for one instance, whose runs never overlap.

    takes       input → index among the arguments
    gives       output → index among the results
    datatypes   output → its datatype
    inference   whether runs use torch's inference mode; otherwise they use no_grad
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
        """Return whether numpy and torch represent all of these datatypes in the same way."""
        return not any(each in _CONVERTED for each in datatypes)

    def __call__(self, batch: Batch) -> list[Any] | dict[str, Any]:
        """Return the results of the program for a batch. Call it, and use the results, inside `guard`."""
        arguments = self._defaults.copy()
        for name in batch:
            arguments[self._takes[name]] = self._tensor(batch[name])
        return self._program.run(arguments)

    def arrays(self, found: list[Any] | dict[str, Any], names: list[str]) -> dict[str, Any] | None:
        """Return {name: array} of the results of the program.

        Returns None if a result is not a tensor of the configured datatype with at least one dimension, or if
        the results are not a list. The general path then converts or refuses them.
        """
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
            except (RuntimeError, TypeError):  # it has a gradient, a lazy negation, or is on a GPU
                return None
            if not array.ndim:
                return None
            arrays[name] = array.copy() if self._copies else array
        return arrays


def _tensor(array: np.ndarray) -> Any:
    if not array.flags.c_contiguous:  # its strides may be negative, which torch lacks
        array = np.ascontiguousarray(array)
    return torch.from_numpy(array)


def _tensor_to_write_to(array: np.ndarray) -> Any:
    """Return a tensor that the program may write to: of a copy if the array is read-only."""
    return _tensor(array if array.flags.writeable else array.copy())
