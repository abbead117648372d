"""Refuse a configuration that the model file contradicts. Errors name the values of both.

complete ─► … ─► [check] ─► fitting.  The error texts begin like Triton's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from backend_openvino.tensors import Port, Ports
from core import dtypes
from core.completion import tensors_of_the_server
from core.config import ModelConfig
from core.dtypes import DataType
from core.errors import CoreError, invalid, unsupported


def check(config: ModelConfig, ports: Ports, *, reshapes: bool) -> None:
    """Compare every input and output of the configuration with the file.

    reshapes   whether the dims of the configuration replace those of the file; shapes are not compared then
    Raises CoreError(INVALID) for a name, shape or number of inputs that does not fit, for text in place of
    numbers or the reverse, and for a state whose datatype differs from the file. Raises
    CoreError(UNSUPPORTED) for a tensor that the protocol cannot carry, and for optional inputs, ragged
    inputs, batch_input and batch_output.
    """
    if config.batch_input or config.batch_output:
        raise unsupported(
            f"model '{config.name}': batch_input and batch_output are not for OpenVINO models; "
            "remove them from config.pbtxt"
        )
    for io in config.input:
        if io.optional:
            raise unsupported(
                f"model '{config.name}': 'optional' is set to true for input '{io.name}' while the backend "
                "model doesn't support optional input; an OpenVINO model needs all of its inputs"
            )
        if io.allow_ragged_batch:
            raise unsupported(
                f"model '{config.name}': allow_ragged_batch of input '{io.name}' is not for OpenVINO models; "
                "remove it from config.pbtxt"
            )
    expected = {io.name for io in config.input} | tensors_of_the_server(config)[0]
    for name in expected:
        _check_name(name, ports.inputs, "input")
    given = {ports.inputs[name].index for name in expected}
    if len(given) != len(ports.input_list):
        missing = [port.names[0] for port in ports.input_list if port.index not in given]
        raise invalid(
            f"unable to load model '{config.name}', configuration expects {len(given)} inputs, "
            f"model provides {len(ports.input_list)}; config.pbtxt lacks {', '.join(missing)}"
        )
    for io in config.input:
        _check_tensor(config, io, ports.inputs[io.name], exact=False, shape=not reshapes)
    for output in config.output:
        _check_name(output.name, ports.outputs, "output")
        _check_tensor(config, output, ports.outputs[output.name], exact=True, shape=not reshapes)
    for state in config.sequence_batching.state:
        _check_name(state.output_name, ports.outputs, "output")
        for name, port in (
            (state.input_name, ports.inputs[state.input_name]),
            (state.output_name, ports.outputs[state.output_name]),
        ):
            _check_type_of_state(config.name, name, dtypes.BY_NUMBER[state.data_type], port)


def unservable(model: str, port: Port) -> CoreError:
    """Return the error for a tensor whose type the protocol does not have."""
    return unsupported(
        f"model '{model}': '{port.names[0]}' is of type {port.type}, which cannot be sent to clients; "
        f"convert it to one of {', '.join(d.name for d in dtypes.ALL)}"
    )


def unexpected(name: str, ports: Mapping[str, Port], kind: str) -> CoreError:
    """Return the error for a tensor that the file does not have."""
    return invalid(
        f"unexpected inference {kind} '{name}', allowed {kind}s are: {', '.join(sorted(ports))}"
    )


def _check_name(name: str, ports: Mapping[str, Port], kind: str) -> None:
    if name not in ports:
        raise unexpected(name, ports, kind)


def _check_type_of_state(model: str, name: str, asked: DataType, port: Port) -> None:
    """Raise CoreError(INVALID) unless a state tensor of the configuration has the datatype of the file.

    Inputs and outputs may differ from the file: the compiled model converts them. States are not converted.
    """
    if asked is not port.dtype:
        raise invalid(
            f"unable to load model '{model}', configuration expects datatype {asked.config_name} for "
            f"state '{name}', model provides {port.dtype.config_name if port.dtype else port.type}"
        )


def _check_tensor(config: ModelConfig, io: Any, port: Port, *, exact: bool, shape: bool) -> None:
    if port.dtype is None:
        raise unservable(config.name, port)
    asked = dtypes.BY_NUMBER[io.data_type]
    if asked is not port.dtype and dtypes.BYTES in (asked, port.dtype):
        raise invalid(
            f"unable to load model '{config.name}', configuration expects datatype "
            f"{asked.config_name} for '{io.name}', model provides {port.dtype.config_name}"
        )
    dims = tuple(io.reshape.shape) if io.HasField("reshape") else tuple(io.dims)
    if port.dims is None or not shape:
        return
    if not port.dims:
        _check_scalar(config, io.name, dims)
        return
    found = port.dims[1:] if config.max_batch_size else port.dims
    fits = len(dims) == len(found) and all(
        a == b or (a == -1 and not exact) or b == -1 for a, b in zip(dims, found, strict=True)
    )
    if not fits:
        raise _shapes_differ(config, io.name, port.dims, dims)


def _shapes_differ(
    config: ModelConfig, name: str, found: tuple[int, ...], dims: tuple[int, ...]
) -> CoreError:
    whole = (-1, *dims) if config.max_batch_size else dims
    explanation = f"shape {_shape(whole)}"
    if config.max_batch_size:
        explanation = (
            "an initial batch dimension because max_batch_size > 0 followed by the explicit tensor "
            f"shape, making complete shape {_shape(whole)}"
        )
    return invalid(
        f"model '{config.name}', tensor '{name}': the model expects {len(found)} dimensions "
        f"(shape {_shape(found)}) but the model configuration specifies {len(whole)} dimensions "
        f"({explanation})"
    )


def _check_scalar(config: ModelConfig, name: str, dims: tuple[int, ...]) -> None:
    if any(dim != 1 for dim in dims) or config.max_batch_size:
        raise invalid(
            f"model '{config.name}': tensor '{name}' of the model is a scalar, which is one element to "
            f"clients: dims [1] and max_batch_size 0; config.pbtxt has dims {_shape(dims)} and "
            f"max_batch_size {config.max_batch_size}"
        )


def _shape(dims: Iterable[int]) -> str:
    return "[" + ",".join(map(str, dims)) + "]"
