"""Port and Program: the inputs and outputs of a loaded model, and its run, for all kinds of files.

torchscript, exported, aoti, module ─► [Program] ─► naming, complete, instance.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from core import dtypes
from core.dtypes import DataType


@dataclass(frozen=True)
class Port:
    """One input or output of a program: a tensor or a list of text.

    name      name in the program; a completed configuration has it
    aliases   further names that a configuration may use
    dtype     None if the file lacks it
    dims      with the batch dimension, -1 for any size; None if the file lacks them
    text      whether it is a List[str]
    optional  whether the program runs without it, with `default` instead
    """

    name: str
    aliases: tuple[str, ...] = ()
    dtype: DataType | None = None
    dims: tuple[int, ...] | None = None
    text: bool = False
    optional: bool = False
    default: Any = None


class Program:
    """A model that is loaded on one device. Each kind of file has a subclass.

    kind            name of the kind of file, for messages
    takes           inputs in order; None if the program takes one dict with any keys
    gives           outputs in order; None if they are unknown before a run
    most_rows       upper bound of the batch dimension, 0 if the file has none
    writes_inputs   whether a run may write to its arguments
    keeps_outputs   whether a later run may write to the results of an earlier one
    module          the nn.Module or ScriptModule that has weights and buffers, None without one
    """

    kind = ""
    takes: Sequence[Port] | None = None
    gives: Sequence[Port] | None = None
    most_rows = 0
    writes_inputs = False
    keeps_outputs = False
    module: Any = None

    def tensors(self) -> Iterable[Any]:
        """Return weights and buffers; nothing if the program does not give access to them."""
        if self.module is not None:
            yield from self.module.parameters()
            yield from self.module.buffers()

    def run(self, arguments: list[Any] | dict[str, Any]) -> list[Any] | dict[str, Any]:
        """Run the program once.

        arguments   tensors or lists of str, in the order of `takes`, or by name if that is None
        Return the outputs in order, or by name for a program that returns a dict.
        """
        raise NotImplementedError


# Keys are names of torch.dtypes, because this module must not import torch.
_BY_TORCH = {
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
    "bfloat16": dtypes.BF16,
    "float32": dtypes.FP32,
    "float64": dtypes.FP64,
}


_TO_TORCH = {dtype: name for name, dtype in _BY_TORCH.items()}


def datatype_of(torch_dtype: Any) -> DataType | None:
    """Return the datatype of a torch.dtype or its name; None if the protocol lacks it (complex, …)."""
    return _BY_TORCH.get(str(torch_dtype).removeprefix("torch."))


def torch_dtype_of(dtype: DataType) -> Any:
    """Return the torch.dtype of a datatype, which must not be BYTES."""
    import torch

    return getattr(torch, _TO_TORCH[dtype])
