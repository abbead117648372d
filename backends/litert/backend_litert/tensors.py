"""The inputs and outputs of a model with core's datatypes.

reading ─► [Ports] ─► complete, check, runs.
"""

from __future__ import annotations

from dataclasses import dataclass

from core import dtypes
from core.dtypes import DataType

# Name of a datatype of numpy, or "string" → the number that files have for it (TensorType in schema.fbs).
TYPE_NUMBERS = {
    "float32": 0,
    "float16": 1,
    "int32": 2,
    "uint8": 3,
    "int64": 4,
    "string": 5,
    "bool": 6,
    "int16": 7,
    "complex64": 8,
    "int8": 9,
    "float64": 10,
    "complex128": 11,
    "uint64": 12,
    "resource": 13,
    "variant": 14,
    "uint32": 15,
    "uint16": 16,
    "int4": 17,
    "bfloat16": 18,
}
_NAMES = {number: name for name, number in TYPE_NUMBERS.items()}
_DTYPES = {str(each.numpy): each for each in dtypes.ALL if each not in (dtypes.BYTES, dtypes.BF16)}
_DTYPES["string"] = dtypes.BYTES


def type_name(number: int) -> str:
    """Return the name of a type in a file; "type 99" for one that this version does not know."""
    return _NAMES.get(number, f"type {number}")


@dataclass(frozen=True)
class Port:
    """One input or output.

    name     in the signature, else that of the tensor
    index    number of the tensor
    type     name in TYPE_NUMBERS
    dims     -1 for any size; () for a scalar
    scale    (scale, zero point) of a quantised tensor with one scale; None for others
    """

    name: str
    index: int
    type: str
    dims: tuple[int, ...]
    scale: tuple[float, int] | None = None

    @property
    def dtype(self) -> DataType | None:
        """Return the datatype; None for types that the protocol cannot carry."""
        return _DTYPES.get(self.type)


@dataclass(frozen=True)
class Ports:
    """The inputs and outputs of a model by name, in the order of the file.

    graph   number of the graph in the file that has their tensors; 0 for the first one
    key     of their signature; "" in a file without signatures
    """

    inputs: dict[str, Port]
    outputs: dict[str, Port]
    graph: int = 0
    key: str = ""

    @property
    def all(self) -> list[Port]:
        return [*self.inputs.values(), *self.outputs.values()]

    @property
    def batches(self) -> bool:
        """Return whether the first dimension of every tensor is open: it is that of the batch."""
        return all(port.dims[:1] == (-1,) for port in self.all)

    @property
    def has_one_row(self) -> bool:
        """Return whether the first dimension of every tensor is 1."""
        return all(port.dims[:1] == (1,) for port in self.all)
