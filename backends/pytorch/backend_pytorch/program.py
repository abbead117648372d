"""Port and Program: what a loaded model takes and gives, whichever file it came from.

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
    """One tensor, or list of text, that a program takes or gives.

    name      as the program calls it; written into a configuration that has no inputs or outputs
    aliases   what a configuration may call it as well
    dtype     None where the file does not say
    dims      with the batch dimension, -1 for any size; None where the file does not say
    text      it is a List[str]
    optional  the program runs without it; `default` takes its place
    """

    name: str
    aliases: tuple[str, ...] = ()
    dtype: DataType | None = None
    dims: tuple[int, ...] | None = None
    text: bool = False
    optional: bool = False
    default: Any = None


class Program:
    """A model, loaded to one device. Base of its kinds.

    takes         its inputs in order; None if it takes one dict, with whatever keys
    gives         its outputs in order; None if only a run tells
    most_rows     an upper bound of the batch dimension, 0 if the file gives none
    writes_inputs   it may write to the tensors it is given
    keeps_outputs   it may write again to what it gave
    kind          what it is, for people
    """

    kind = ""
    takes: Sequence[Port] | None = None
    gives: Sequence[Port] | None = None
    most_rows = 0
    writes_inputs = False
    keeps_outputs = False

    def tensors(self) -> Iterable[Any]:
        """Weights and buffers; nothing where the program does not tell."""
        return ()

    def run(self, arguments: list[Any] | dict[str, Any]) -> list[Any] | dict[str, Any]:
        """One forward. Tensors or lists of str, in the order of `takes`, or by name if that is None.

        Gives the outputs in order; or by name, for a program that returns a dict.
        """
        raise NotImplementedError


# By the last part of torch's name: this module must not import torch.
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


def named_datatype(name: str) -> DataType | None:
    """The datatype that torch calls "float32"."""
    return _BY_TORCH.get(name)


_TO_TORCH = {dtype: name for name, dtype in _BY_TORCH.items()}


def datatype_of(torch_dtype: Any) -> DataType | None:
    """The datatype of a torch.dtype, None for one that the protocol does not have (complex, float8, …)."""
    return _BY_TORCH.get(str(torch_dtype).removeprefix("torch."))


def torch_dtype_of(dtype: DataType) -> Any:
    """The torch.dtype of a datatype that torch has: of all but BYTES."""
    import torch

    return getattr(torch, _TO_TORCH[dtype])
