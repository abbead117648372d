"""The inputs and outputs of a model with core's datatypes.

saved_model, graph_def ─► [Ports] ─► complete, check, instance.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from core import dtypes
from core.config import ModelConfig
from core.file_signature import FileSignature, FileTensor

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
class Port(FileTensor):
    """One input or output.

    name       for clients
    type       a name in TYPES
    tensor     name in the graph, such as "dense/BiasAdd:0"
    part       whether it is a component of a ragged or sparse tensor, which has no rows of its own
    any_rank   whether it may have any number of dimensions; `dims` is (-1,) then, and includes no batch
    """

    tensor: str
    part: bool = False
    any_rank: bool = False
    carried = _DTYPES
    advice = "which cannot be sent to clients; export the model with one of"

    @property
    def shape(self) -> str:
        """Return the dims as text."""
        return "of any rank" if self.any_rank else str(list(self.dims))

    def dims_in(self, config: ModelConfig) -> tuple[int, ...]:
        """Return the dims that a configuration gives it; a tensor of any rank is a vector."""
        return self.dims if self.any_rank else super().dims_in(config)


@dataclass(frozen=True)
class Ports(FileSignature[Port]):
    """The inputs and outputs of a model by name, in the order of their names."""

    @property
    def batches(self) -> bool:
        """Return whether the first dimension of every tensor is open: it is that of the batch."""
        apart = self.has_parts or any(port.any_rank for port in self.all)
        return super().batches and not apart

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


def port_of(
    name: str, tensor: str, type_: str, dims: tuple[int, ...] | None, *, part: bool = False
) -> Port:
    """Return the port of a tensor in a graph; dims None stands for any number of dimensions."""
    return Port(name, type_, (-1,) if dims is None else dims, tensor, part, dims is None)


def listed(ports: Iterable[Port]) -> str:
    """Return names and shapes as text."""
    return ", ".join(f"'{each.name}' {each.shape}" for each in ports)
