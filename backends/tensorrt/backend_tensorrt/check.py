"""Refuse a configuration that the engine contradicts. Errors name the values of both.

complete ─► … ─► [check] ─► instance.  The error texts begin like Triton's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from backend_tensorrt.facts import Facts, Port
from core import dtypes
from core.completion import tensors_of_the_server, wrong_inputs
from core.config import ModelConfig
from core.errors import CoreError, invalid, unsupported


def check(config: ModelConfig, facts: Facts) -> None:
    """Compare every input and output of a configuration with an engine.

    Raises CoreError(INVALID) for a name, datatype, shape, batch size or number of inputs that does not fit,
    and CoreError(UNSUPPORTED) for a tensor that the protocol cannot carry.
    """
    _check_batch(config, facts)
    reserved, _ = tensors_of_the_server(config)
    for name in reserved:
        _check_name(name, facts.inputs, "input")
    given = {io.name for io in config.input} | reserved
    missing = [name for name in facts.inputs if name not in given]
    if missing:
        raise wrong_inputs(config.name, given, facts.inputs, missing)
    scattered = {name for each in config.batch_output for name in each.target_name}
    for io in config.input:
        _check_name(io.name, facts.inputs, "input")
        if io.optional:
            raise invalid(
                f"unable to load model '{config.name}', optional input '{io.name}' is not supported: "
                "TensorRT engines need all of their inputs"
            )
        _check_tensor(config, io, facts.inputs[io.name], "input", free=io.allow_ragged_batch)
    for output in config.output:
        _check_name(output.name, facts.outputs, "output")
        port = facts.outputs[output.name]
        _check_tensor(config, output, port, "output", free=output.name in scattered)
    for state in config.sequence_batching.state:
        _check_name(state.input_name, facts.inputs, "input")
        _check_name(state.output_name, facts.outputs, "output")
        _check_type(config, state.data_type, facts.inputs[state.input_name], "state")
        _check_type(config, state.data_type, facts.outputs[state.output_name], "state")


def unservable(model: str, port: Port) -> CoreError:
    """Return the error for a tensor whose type the protocol does not have."""
    return unsupported(
        f"model '{model}': '{port.name}' is of type {port.type}, which cannot be sent to clients; cast it "
        "within the engine, which may use that type inside"
    )


def _check_batch(config: ModelConfig, facts: Facts) -> None:
    # With ragged inputs, the engine sees elements of all requests as one row.
    if not config.max_batch_size or any(io.allow_ragged_batch for io in config.input):
        return
    if not facts.batches:
        fixed = next(p for p in facts.ports if not p.on_host and p.dims[:1] != (-1,))
        raise invalid(
            f"unexpected configuration maximum batch size {config.max_batch_size} for '{config.name}', the "
            f"engine does not batch: '{fixed.name}' has the shape {list(fixed.dims)}, whose first dimension "
            "is not open; set max_batch_size: 0, or build the engine with a profile of several rows"
        )
    if config.max_batch_size > facts.most_rows:
        raise invalid(
            f"unexpected configuration maximum batch size {config.max_batch_size} for '{config.name}', "
            f"model maximum is {facts.most_rows}, the most rows of its optimization profiles"
        )


def _check_name(name: str, ports: Mapping[str, Port], kind: str) -> None:
    if name not in ports:
        raise invalid(
            f"unexpected inference {kind} '{name}', allowed {kind}s are: {', '.join(sorted(ports))}"
        )


def _check_type(config: ModelConfig, number: int, port: Port, kind: str) -> None:
    if port.dtype is None:
        raise unservable(config.name, port)
    if number != port.dtype.number:
        raise invalid(
            f"unable to load model '{config.name}', configuration expects datatype "
            f"{dtypes.BY_NUMBER[number].config_name} for {kind} '{port.name}', model provides "
            f"{port.dtype.config_name}"
        )


def _check_tensor(config: ModelConfig, io: Any, port: Port, kind: str, *, free: bool) -> None:
    _check_type(config, io.data_type, port, kind)
    if io.is_shape_tensor != port.on_host:
        found = "is a shape tensor" if port.on_host else "is no shape tensor"
        raise invalid(
            f"unable to load model '{config.name}', {kind} '{io.name}' {found} in the engine; set "
            f"is_shape_tensor: {str(port.on_host).lower()} in config.pbtxt"
        )
    if io.is_non_linear_format_io == port.linear:
        found = "is linear" if port.linear else f"is not linear ({port.format})"
        raise invalid(
            f"unable to load model '{config.name}', the format of {kind} '{io.name}' {found} in the engine; "
            f"set is_non_linear_format_io: {str(not port.linear).lower()} in config.pbtxt"
        )
    if not free:
        _check_dims(config, io, port, kind)


def _check_dims(config: ModelConfig, io: Any, port: Port, kind: str) -> None:
    dims = tuple(io.reshape.shape) if io.HasField("reshape") else tuple(io.dims)
    batches = bool(config.max_batch_size)
    if not port.on_host:
        whole = (-1, *dims) if batches else dims
    else:  # the batch is the first of its values
        whole = tuple(size if size < 0 else size + batches for size in dims)
    if not port.dims and dims == (1,):
        return  # clients see a scalar as [1]
    fits = len(whole) == len(port.dims) and all(
        asked == found or found == -1 or (asked == -1 and kind == "output")
        for asked, found in zip(whole, port.dims, strict=True)
    )
    if not fits:
        raise invalid(
            f"unable to load model '{config.name}', {kind} '{io.name}': the model expects shape "
            f"{list(port.dims)}, the model configuration specifies {list(whole)}"
            + (" (the first is the batch)" if batches and not port.on_host else "")
        )
    padding = port.byte_size(tuple(max(1, size) for size in port.dims)) if port.vector > 0 else 0
    if padding and port.dims[port.vector] > 0 and port.dims[port.vector] % port.lanes:
        raise unsupported(
            f"model '{config.name}': {kind} '{io.name}' lies in vectors of {port.lanes} along dimension "
            f"{port.vector}, whose size {port.dims[port.vector]} is no multiple of that; pad it in the "
            "engine, or build the engine with linear inputs and outputs"
        )
