"""Change datatypes, shapes and batch dimension of a model to fit the configuration.

openvino.Model, ModelConfig ─► [fitting] ─► openvino.Model that is ready to be compiled.

A model that batches is compiled for any number of rows. If its graph does not allow that (it has a shape as
a constant), it is compiled for exactly max_batch_size rows, like every model in Triton. Smaller batches are
then padded, or refused.
"""

from __future__ import annotations

from typing import Any

import openvino as ov
from openvino.preprocess import PrePostProcessor

from backend_openvino.reading import ov_text
from backend_openvino.settings import Settings
from backend_openvino.tensors import TYPES, Port, Ports, ports_of
from core import dtypes
from core.config import ModelConfig
from core.errors import CoreError, invalid


def fitted(model: Any, config: ModelConfig, ports: Ports, settings: Settings) -> tuple[Any, int]:
    """Return the model to compile, and the number of rows that it takes: 0 for any.

    model   from the file; may be modified
    Raises CoreError(INVALID) if the model cannot fit the configuration.
    """
    open_ranks = any(ports.inputs[io.name].dims is None for io in config.input)
    if settings.reshapes or open_ranks:
        _reshape(model, config, ports, whole=settings.reshapes)
    rows = 0
    if config.max_batch_size:
        model, rows = _batched(model, config, settings)
    return _converted(model, config, ports), rows


def _reshape(model: Any, config: ModelConfig, ports: Ports, *, whole: bool) -> None:
    """Set the dims of inputs to those of the configuration.

    whole   whether to set those of all inputs; otherwise only those of unknown rank
    Raises CoreError(INVALID) if the model cannot have these shapes.
    """
    shapes = {}
    for io in config.input:
        if not whole and ports.inputs[io.name].dims is not None:
            continue
        dims = list(io.reshape.shape) if io.HasField("reshape") else list(io.dims)
        shapes[ports.inputs[io.name].index] = [-1, *dims] if config.max_batch_size else dims
    _change_shapes(model, shapes, config)


def _change_shapes(model: Any, shapes: dict[int, list[int]], config: ModelConfig) -> None:
    try:
        model.reshape({index: ov.PartialShape(dims) for index, dims in shapes.items()})
    except Exception as error:
        what = f"its inputs cannot have the shapes {list(shapes.values())}"
        raise _cannot(config, what, error) from error


def _batched(model: Any, config: ModelConfig, settings: Settings) -> tuple[Any, int]:
    ports = ports_of(model)
    for port in (*ports.input_list, *ports.output_list):
        if port.dims == ():
            raise invalid(
                f"model '{config.name}', tensor '{', '.join(port.names)}': for the model to support "
                "batching the shape should have at least 1 dimension; set max_batch_size: 0"
            )
    if not settings.fixed_batch:
        free = model.clone()
        if _accepts_any_batch(free):
            return free, 0
    return _with_fixed_batch(model, config), config.max_batch_size


def _accepts_any_batch(model: Any) -> bool:
    """Make the first dimension of every input dynamic. Return whether all outputs become dynamic, too."""
    opened = {
        port.index: ov.PartialShape([-1, *port.dims[1:]])
        for port in ports_of(model).input_list
        if port.dims is not None
    }
    try:
        model.reshape(opened)
    except Exception:
        return False  # each operator of OpenVINO has its own error for this
    return all(port.dims is None or port.dims[0] == -1 for port in ports_of(model).output_list)


def _with_fixed_batch(model: Any, config: ModelConfig) -> Any:
    rows = config.max_batch_size
    ports = ports_of(model)
    if any(port.dims is not None and port.dims[0] != rows for port in ports.input_list):
        shapes = {p.index: [rows, *p.dims[1:]] for p in ports.input_list if p.dims is not None}
        _change_shapes(model, shapes, config)
    for port in ports_of(model).output_list:
        if port.dims is not None and port.dims[0] not in (-1, rows):
            raise _cannot(
                config,
                f"its output {', '.join(port.names)} has shape {list(port.dims)} whatever the batch; "
                f"export it with a dynamic first dimension, or set max_batch_size: {port.dims[0]}",
            )
    return model


def _converted(model: Any, config: ModelConfig, ports: Ports) -> Any:
    """Return the model with a conversion at each input and output whose datatype config.pbtxt changes."""
    steps = PrePostProcessor(model)
    differs = False
    tensors: list[tuple[int, Port, Any]] = [
        *((io.data_type, ports.inputs[io.name], steps.input) for io in config.input),
        *((io.data_type, ports.outputs[io.name], steps.output) for io in config.output),
    ]
    for number, port, place in tensors:
        asked = dtypes.BY_NUMBER[number]
        if asked is not port.dtype:
            place(port.index).tensor().set_element_type(TYPES[asked])
            differs = True
    return steps.build() if differs else model


def _cannot(config: ModelConfig, what: str, error: BaseException | None = None) -> CoreError:
    reason = f" ({ov_text(error)})" if error else ""
    return invalid(
        f"unable to load model '{config.name}' with max_batch_size {config.max_batch_size}: {what}{reason}"
    )
