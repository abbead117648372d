"""The inputs and outputs of a model with core's datatypes.

reading ─► [Ports] ─► complete, check, runs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from core import dtypes
from core.file_signature import FileSignature, FileTensor

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
class Port(FileTensor):
    """One input or output.

    name     in the signature, else that of the tensor
    type     name in TYPE_NUMBERS
    index    number of the tensor
    scale    (scale, zero point) of a quantised tensor with one scale; None for others
    """

    index: int
    scale: tuple[float, int] | None = None
    carried = _DTYPES

    @property
    def is_quantised(self) -> bool:
        """Return whether the elements are whole numbers that stand for real ones."""
        return self.scale is not None and self.type in ("int8", "uint8", "int16")


@dataclass(frozen=True)
class Ports(FileSignature[Port]):
    """The inputs and outputs of a model by name, in the order of the file.

    graph   number of the graph in the file that has their tensors; 0 for the first one
    key     of their signature; "" in a file without signatures
    """

    graph: int = 0
    key: str = ""

    @property
    def has_one_row(self) -> bool:
        """Return whether the first dimension of every tensor is 1."""
        return all(port.dims[:1] == (1,) for port in self.all)

    def as_sent(self, float_tensors: bool) -> Ports:
        """Return the ports with the types that clients send and get.

        float_tensors   quantised ones are float32 to clients
        """
        if not float_tensors:
            return self
        inputs, outputs = (
            {
                name: replace(port, type="float32") if port.is_quantised else port
                for name, port in ports.items()
            }
            for ports in (self.inputs, self.outputs)
        )
        return replace(self, inputs=inputs, outputs=outputs)
