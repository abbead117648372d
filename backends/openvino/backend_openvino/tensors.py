"""The inputs and outputs of a model with core's datatypes.

openvino.Model ─► [Ports] ─► complete, check, fitting, instance.  Calls of OpenVINO use the index of a port,
not its name, because a conversion of datatypes may remove a name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import openvino as ov

from core import dtypes
from core.dtypes import DataType

TYPES: dict[DataType, Any] = {
    dtypes.BOOL: ov.Type.boolean,
    dtypes.UINT8: ov.Type.u8,
    dtypes.UINT16: ov.Type.u16,
    dtypes.UINT32: ov.Type.u32,
    dtypes.UINT64: ov.Type.u64,
    dtypes.INT8: ov.Type.i8,
    dtypes.INT16: ov.Type.i16,
    dtypes.INT32: ov.Type.i32,
    dtypes.INT64: ov.Type.i64,
    dtypes.FP16: ov.Type.f16,
    dtypes.FP32: ov.Type.f32,
    dtypes.FP64: ov.Type.f64,
    dtypes.BYTES: ov.Type.string,
    dtypes.BF16: ov.Type.bf16,
}
_BY_TYPE_NAME = {each.get_type_name(): dtype for dtype, each in TYPES.items()}


def by_type_name(name: str) -> DataType | None:
    """Return the datatype of a type name of OpenVINO; None for a type that the protocol cannot carry."""
    return _BY_TYPE_NAME.get(name)


@dataclass(frozen=True)
class Port:
    """One input or output.

    names   all names in the file, else the name of its node; a completed configuration has the first
    index   position among the inputs or outputs
    type    type name of OpenVINO: "f32"
    dtype   the datatype; None for types that the protocol cannot carry
    dims    -1 for any size; () for a scalar; None for an unknown rank
    has_batch
            whether the layout in the file names a batch dimension
    """

    names: tuple[str, ...]
    index: int
    type: str
    dtype: DataType | None
    dims: tuple[int, ...] | None
    has_batch: bool


@dataclass(frozen=True)
class Ports:
    """The inputs and outputs of a model: by each of their names, and as tuples in order."""

    inputs: dict[str, Port]
    outputs: dict[str, Port]
    input_list: tuple[Port, ...]
    output_list: tuple[Port, ...]


def ports_of(model: Any) -> Ports:
    """Return the ports of an openvino.Model."""
    inputs = tuple(_port(each, i) for i, each in enumerate(model.inputs))
    outputs = tuple(_port(each, i) for i, each in enumerate(model.outputs))
    return ports_from(inputs, outputs)


def ports_from(inputs: tuple[Port, ...], outputs: tuple[Port, ...]) -> Ports:
    """Return the Ports of these inputs and outputs."""
    return Ports(_by_name(inputs), _by_name(outputs), inputs, outputs)


def _by_name(ports: Iterable[Port]) -> dict[str, Port]:
    return {name: port for port in ports for name in port.names}


def _port(output: Any, index: int) -> Port:
    found = output.get_element_type().get_type_name()
    layout = ov.layout_helpers.get_layout(output)
    return Port(
        names=tuple(sorted(output.get_names())) or (output.node.get_friendly_name(),),
        index=index,
        type=found,
        dtype=_BY_TYPE_NAME.get(found),
        dims=dims_of(output.get_partial_shape()),
        has_batch=not layout.empty and bool(ov.layout_helpers.has_batch(layout)),
    )


def is_static(model: Any) -> bool:
    """Return whether every tensor of an openvino.Model, internal ones included, has a static shape."""
    return not any(
        output.get_partial_shape().is_dynamic
        for node in model.get_ordered_ops()
        for output in node.outputs()
    )


def dims_of(shape: Any) -> tuple[int, ...] | None:
    """Return the dimensions of an openvino.PartialShape, -1 for any size; None for a dynamic rank."""
    if shape.rank.is_dynamic:
        return None
    return tuple(-1 if dim.is_dynamic else dim.get_length() for dim in shape)
