"""The inputs and outputs of a session with core's datatypes.

session ─► [Graph] ─► complete, check, instance.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from core import dtypes
from core.dtypes import DataType

_BY_ORT_NAME = {
    "tensor(bool)": dtypes.BOOL,
    "tensor(uint8)": dtypes.UINT8,
    "tensor(uint16)": dtypes.UINT16,
    "tensor(uint32)": dtypes.UINT32,
    "tensor(uint64)": dtypes.UINT64,
    "tensor(int8)": dtypes.INT8,
    "tensor(int16)": dtypes.INT16,
    "tensor(int32)": dtypes.INT32,
    "tensor(int64)": dtypes.INT64,
    "tensor(float16)": dtypes.FP16,
    "tensor(float)": dtypes.FP32,
    "tensor(double)": dtypes.FP64,
    "tensor(string)": dtypes.BYTES,
    "tensor(bfloat16)": dtypes.BF16,
}


@dataclass(frozen=True)
class TensorInfo:
    """One input or output of a model file.

    type    type name of ONNX Runtime: "tensor(float)", "seq(map(int64,tensor(float)))"
    dtype   the datatype; None for types that the protocol cannot carry
    dims    -1 for any size; () for a scalar and for a tensor of unknown rank
    """

    name: str
    type: str
    dtype: DataType | None
    dims: tuple[int, ...]

    @property
    def batches(self) -> bool:
        """Whether the first dimension has any size, so that it can hold the rows of a batch."""
        return bool(self.dims) and self.dims[0] == -1


@dataclass(frozen=True)
class Graph:
    """The inputs and outputs of a model file, in the file's order.

    overridable   initializers that a request may replace: optional inputs
    """

    inputs: dict[str, TensorInfo]
    outputs: dict[str, TensorInfo]
    overridable: dict[str, TensorInfo]

    @property
    def batches(self) -> bool:
        """Whether every input and output has a first dimension of any size."""
        return all(info.batches for info in (*self.inputs.values(), *self.outputs.values()))


def graph_of(session: Any) -> Graph:
    """Return the graph of an onnxruntime.InferenceSession."""
    return Graph(
        inputs=_infos(session.get_inputs()),
        outputs=_infos(session.get_outputs()),
        overridable=_infos(session.get_overridable_initializers()),
    )


def by_type_name(name: str) -> DataType | None:
    """Return the datatype of a type of ONNX Runtime; None for a type that the protocol cannot carry."""
    return _BY_ORT_NAME.get(name)


def _infos(nodes: Iterable[Any]) -> dict[str, TensorInfo]:
    found = {}
    for node in nodes:
        dims = tuple(dim if isinstance(dim, int) and dim >= 0 else -1 for dim in node.shape)
        dtype = by_type_name(node.type)
        found[node.name] = TensorInfo(node.name, node.type, dtype, dims)
    return found
