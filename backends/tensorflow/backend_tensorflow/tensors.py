"""The inputs and outputs of a model with core's datatypes.

saved_model, graph_def ─► [Ports] ─► complete, check, instance.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from core import dtypes
from core.dtypes import DataType

# Number of a datatype in TensorFlow's types.proto → its name.
TYPES = {
    1: "float32",
    2: "float64",
    3: "int32",
    4: "uint8",
    5: "int16",
    6: "int8",
    7: "string",
    8: "complex64",
    9: "int64",
    10: "bool",
    11: "qint8",
    12: "quint8",
    13: "qint32",
    14: "bfloat16",
    15: "qint16",
    16: "quint16",
    17: "uint16",
    18: "complex128",
    19: "float16",
    20: "resource",
    21: "variant",
    22: "uint32",
    23: "uint64",
}
_DTYPES = {str(each.numpy): each for each in dtypes.ALL if each not in (dtypes.BYTES, dtypes.BF16)}
_DTYPES |= {"string": dtypes.BYTES, "bfloat16": dtypes.BF16}


@dataclass(frozen=True)
class Port:
    """One input or output.

    name     for clients
    tensor   name in the graph, such as "dense/BiasAdd:0"
    type     a name in TYPES
    dims     -1 for any size; () for a scalar; None for any number of dimensions
    part     whether it is a component of a ragged or sparse tensor, which has no rows of its own
    """

    name: str
    tensor: str
    type: str
    dims: tuple[int, ...] | None
    part: bool = False

    @property
    def dtype(self) -> DataType | None:
        """Return the datatype; None for types that the protocol cannot carry."""
        return _DTYPES.get(self.type)

    @property
    def shape(self) -> str:
        """Return the dims as text."""
        return "of any rank" if self.dims is None else str(list(self.dims))


@dataclass(frozen=True)
class Ports:
    """The inputs and outputs of a model by name, in the order of their names."""

    inputs: dict[str, Port]
    outputs: dict[str, Port]

    @property
    def all(self) -> list[Port]:
        return [*self.inputs.values(), *self.outputs.values()]

    @property
    def batches(self) -> bool:
        """Return whether the first dimension of every tensor is open: it is that of the batch."""
        return all(port.dims is not None and port.dims[:1] == (-1,) for port in self.all) and not (
            self.has_parts
        )

    @property
    def has_parts(self) -> bool:
        """Return whether a tensor is, or may be, a component of a ragged or sparse one."""
        return any(port.part for port in self.all) or any(map(self._splits_rows, self.inputs))

    def _splits_rows(self, name: str) -> bool:
        """Return whether an input may hold the row splits of a ragged tensor.

        Signatures do not say so. TensorFlow names them x_1 beside the values x.
        """
        port, (values, _, number) = self.inputs[name], name.rpartition("_")
        return (
            number.isdigit()
            and values in self.inputs
            and (port.type, port.dims) == ("int64", (-1,))
        )


def listed(ports: Iterable[Port]) -> str:
    """Return names and shapes as text."""
    return ", ".join(f"'{each.name}' {each.shape}" for each in ports)
