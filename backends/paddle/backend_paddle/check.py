"""Refuse a configuration that the model contradicts. Errors name the values of both.

complete ─► … ─► [check] ─► instance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from backend_paddle.tensors import CARRIED, Port, Ports
from core import dtypes
from core.completion import tensors_of_the_server, wrong_inputs
from core.config import ModelConfig
from core.dtypes import DataType
from core.errors import CoreError, invalid, unsupported


def check(config: ModelConfig, ports: Ports) -> None:
    """Compare every input, output, state and control of the configuration with the file.

    Raises CoreError(INVALID) for a name, datatype, shape or number of inputs that does not fit, and for a
    batch that the file cannot have; CoreError(UNSUPPORTED) for what this backend does not have.
    """
    _check_supported(config)
    if config.max_batch_size and not ports.batches:
        fixed = ", ".join(
            f"'{each.name}' {list(each.dims)}" for each in ports.all if each.dims[:1] != (-1,)
        )
        raise invalid(
            f"model '{config.name}': max_batch_size is {config.max_batch_size}, but the first dimension of a "
            f"tensor in the file is not open ({fixed}); set max_batch_size to 0, or export the model with "
            "None as the first dimension of its inputs"
        )
    inputs = {io.name for io in config.input} | tensors_of_the_server(config)[0]
    for name in sorted(inputs):
        _check_name(name, ports.inputs, "input")
    if missing := [name for name in ports.inputs if name not in inputs]:
        raise wrong_inputs(config.name, inputs, ports.inputs, missing)
    for io in config.input:
        _check_tensor(config, io, ports.inputs[io.name])
    for output in config.output:
        _check_name(output.name, ports.outputs, "output")
        _check_tensor(config, output, ports.outputs[output.name])
    for state in config.sequence_batching.state:
        _check_name(state.output_name, ports.outputs, "output")
        for port in (ports.inputs[state.input_name], ports.outputs[state.output_name]):
            _check_type(config, port, state.data_type)
            _check_dims(config, port, tuple(state.dims) or (1,))
    for tensor in config.sequence_batching.control_input:
        for control in tensor.control:
            _check_type(config, ports.inputs[tensor.name], _control_type(control))


def dtype_of(model: str, port: Port) -> DataType:
    """Return the datatype of a tensor. Raises CoreError(UNSUPPORTED) if requests cannot carry it."""
    if port.dtype is None:
        raise unsupported(
            f"model '{model}': '{port.name}' is of type {port.type}, which Paddle Inference neither takes "
            f"nor returns; export the model with one of "
            f"{', '.join(each.name for each in CARRIED.values())}"
        )
    return port.dtype


def dims_of(port: Port, config: ModelConfig) -> tuple[int, ...]:
    """Return the dims of a tensor in a configuration: without the batch, and [1] for a scalar."""
    return port.dims[1 if config.max_batch_size else 0 :] or (1,)


def unexpected(name: str, ports: Iterable[str], kind: str) -> CoreError:
    """Return the error for a tensor that the file does not have."""
    return invalid(
        f"unexpected inference {kind} '{name}', allowed {kind}s are: {', '.join(sorted(ports))}"
    )


def _check_supported(config: ModelConfig) -> None:
    if config.batch_input or config.batch_output:
        raise unsupported(
            f"model '{config.name}': batch_input and batch_output are not for Paddle models; remove them "
            "from config.pbtxt"
        )
    for io in config.input:
        for word in ("optional", "allow_ragged_batch"):
            if getattr(io, word):
                raise unsupported(
                    f"model '{config.name}': '{word}' of input '{io.name}' is not for Paddle models; "
                    "remove it from config.pbtxt"
                )


def _check_name(name: str, ports: Mapping[str, Port], kind: str) -> None:
    if name not in ports:
        raise unexpected(name, ports, kind)


def _check_tensor(config: ModelConfig, io: Any, port: Port) -> None:
    _check_type(config, port, io.data_type)
    _check_dims(config, port, tuple(io.reshape.shape if io.HasField("reshape") else io.dims))


def _check_dims(config: ModelConfig, port: Port, dims: tuple[int, ...]) -> None:
    found = dims_of(port, config)
    scalar = len(port.dims) <= bool(config.max_batch_size)  # its [1] is no dimension of any size
    fits = len(dims) == len(found) and all(
        a == b or (-1 in (a, b) and not scalar) for a, b in zip(dims, found, strict=True)
    )
    if not fits:
        raise invalid(
            f"model '{config.name}', tensor '{port.name}': the model has dims {list(found)}, the "
            f"configuration {list(dims)}"
            + (", both without the batch" if config.max_batch_size else "")
        )


def _check_type(config: ModelConfig, port: Port, number: int) -> None:
    wanted, asked = dtype_of(config.name, port), dtypes.BY_NUMBER.get(number)
    if asked is None:  # the configuration is not valid yet: its validation says so
        return
    if asked is not wanted:
        raise invalid(
            f"unable to load model '{config.name}', configuration expects datatype {asked.config_name} for "
            f"'{port.name}', model provides {wanted.config_name}"
        )


def _control_type(control: Any) -> int:
    """Return the number of the datatype that the server gives a control tensor."""
    for values, dtype in (
        (control.int32_false_true, dtypes.INT32),
        (control.fp32_false_true, dtypes.FP32),
        (control.bool_false_true, dtypes.BOOL),
    ):
        if values:
            return dtype.number
    return int(control.data_type)  # of a correlation ID
