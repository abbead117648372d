"""Refuse a configuration that the model file contradicts. Errors name the values of both.

complete ─► … ─► [check] ─► instance.  The error texts begin like Triton's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from backend_onnx.graph import Graph, TensorInfo
from core import dtypes
from core.completion import tensors_of_the_server, wrong_inputs
from core.config import ModelConfig
from core.config.messages import ModelInput
from core.errors import CoreError, invalid, unsupported


def check(config: ModelConfig, graph: Graph) -> None:
    """Compare every input and output of the configuration with the file.

    Raises CoreError(INVALID) for a name, datatype, shape or number of inputs that does not fit, and
    CoreError(UNSUPPORTED) for a tensor that the protocol cannot carry.
    """
    reserved, _ = tensors_of_the_server(config)
    _check_inputs_complete(config, graph, reserved)
    batch_outputs = {name for each in config.batch_output for name in each.target_name}
    inputs = {**graph.inputs, **graph.overridable}
    for io in config.input:
        _check_name(io.name, inputs, "input")
        _check_type(config, io, inputs[io.name], "input")
        if io.optional and config.max_batch_size:
            raise invalid(
                f"unable to load model '{config.name}', optional input '{io.name}' is not "
                "supported for models that support batching; set max_batch_size: 0"
            )
        if io.allow_ragged_batch:
            _check_ragged(config, io.name, inputs[io.name])
        else:
            _check_shape(config, io, inputs[io.name], exact=False)
    for output in config.output:
        _check_name(output.name, graph.outputs, "output")
        _check_type(config, output, graph.outputs[output.name], "output")
        if output.name not in batch_outputs:
            _check_shape(config, output, graph.outputs[output.name], exact=True)
    for state in config.sequence_batching.state:
        _check_state(config, state.input_name, state, inputs, "input")
        _check_state(config, state.output_name, state, graph.outputs, "output")


def unservable(model: str, info: TensorInfo) -> CoreError:
    """Return the error for a tensor whose type the protocol does not have."""
    text = f"model '{model}': '{info.name}' is of type {info.type}, which cannot be sent to clients"
    if info.type.startswith(("seq(map", "map(")):
        text += (
            "; export the classifier with probabilities as a tensor (skl2onnx: options="
            "{'zipmap': False}), or list only the other outputs in config.pbtxt"
        )
    else:
        text += f"; end the graph with a Cast to one of {', '.join(d.name for d in dtypes.ALL)}"
    return unsupported(text)


def unexpected(name: str, infos: Mapping[str, TensorInfo], kind: str) -> CoreError:
    """Return the error for a tensor that the file does not have."""
    return invalid(
        f"unexpected inference {kind} '{name}', allowed {kind}s are: {', '.join(sorted(infos))}"
    )


def _check_inputs_complete(config: ModelConfig, graph: Graph, reserved: set[str]) -> None:
    """Raise CoreError(INVALID) unless the configuration or `reserved` has every input of the file.

    reserved   names of inputs that the server fills; the file must have each of them
    """
    given = {io.name for io in config.input} | reserved
    missing = [name for name in graph.inputs if name not in given]
    for name in reserved:
        _check_name(name, {**graph.inputs, **graph.overridable}, "input")
    if missing:
        given -= graph.overridable.keys()
        raise wrong_inputs(config.name, given, graph.inputs, missing)


def _check_name(name: str, infos: Mapping[str, TensorInfo], kind: str) -> None:
    if name not in infos:
        raise unexpected(name, infos, kind)


def _check_state(
    config: ModelConfig, name: str, state: Any, infos: Mapping[str, TensorInfo], kind: str
) -> None:
    """Check name, datatype and shape of a state's input or output tensor against the file.

    Raises CoreError as `_check_name`, `_check_type` and `_check_shape` do.
    """
    _check_name(name, infos, kind)
    described = ModelInput(name=name, data_type=state.data_type, dims=state.dims)
    _check_type(config, described, infos[name], f"state {kind}")
    _check_shape(config, described, infos[name], exact=False)


def _check_type(config: ModelConfig, io: Any, info: TensorInfo, kind: str) -> None:
    if info.dtype is None:
        raise unservable(config.name, info)
    if io.data_type != info.dtype.number:
        raise invalid(
            f"unable to load model '{config.name}', configuration expects datatype "
            f"{dtypes.BY_NUMBER[io.data_type].config_name} for {kind} '{io.name}', model provides "
            f"{info.dtype.config_name}"
        )


def _check_ragged(config: ModelConfig, name: str, info: TensorInfo) -> None:
    """Raise CoreError(INVALID) unless the file's input has the shape [-1], which concatenated rows need."""
    if info.dims != (-1,):
        raise invalid(
            f"unable to load model '{config.name}', configuration expects model provides input with "
            f"shape [-1] for ragged input '{name}', model provides {_shape(info.dims)}"
        )


def _check_shape(config: ModelConfig, io: Any, info: TensorInfo, *, exact: bool) -> None:
    """Compare the dimensions of an entry, after its reshape, with the file.

    exact   whether a -1 of the file fits only -1; otherwise it fits every size
    Raises CoreError(INVALID) if they do not fit, or if the configuration batches and the file's first
    dimension is fixed.
    """
    dims = tuple(io.reshape.shape) if io.HasField("reshape") else tuple(io.dims)
    if not info.dims:
        _check_scalar(config, io.name, dims)
        return
    if config.max_batch_size and info.dims[0] != -1:
        raise invalid(
            f"model '{config.name}', tensor '{io.name}': for the model to support batching the "
            "shape should have at least 1 dimension and the first dimension must be -1; but shape "
            f"expected by the model is {_shape(info.dims)}; set max_batch_size: 0, or export the "
            "model with a dynamic first dimension"
        )
    whole = (-1, *dims) if config.max_batch_size else dims
    fits = len(whole) == len(info.dims) and all(
        found == expected or (expected == -1 and not exact)
        for found, expected in zip(whole, info.dims, strict=True)
    )
    if not fits:
        explanation = f"shape {_shape(whole)}"
        if config.max_batch_size:
            explanation = (
                "an initial batch dimension because max_batch_size > 0 followed by the explicit "
                f"tensor shape, making complete shape {_shape(whole)}"
            )
        raise invalid(
            f"model '{config.name}', tensor '{io.name}': the model expects {len(info.dims)} "
            f"dimensions (shape {_shape(info.dims)}) but the model configuration specifies "
            f"{len(whole)} dimensions ({explanation})"
        )


def _check_scalar(config: ModelConfig, name: str, dims: tuple[int, ...]) -> None:
    if any(dim != 1 for dim in dims) or config.max_batch_size:
        raise invalid(
            f"unable to load model '{config.name}', scalar tensor '{name}', should only provide 1 in "
            "the model configuration when the model doesn't support batching. Model configuration "
            f"provided: {_shape(dims)} with max_batch_size {config.max_batch_size}."
        )


def _shape(dims: Iterable[int]) -> str:
    return "[" + ",".join(map(str, dims)) + "]"
