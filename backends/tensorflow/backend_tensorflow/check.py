"""Refuse a configuration that the model contradicts. Errors name the values of both.

complete ─► … ─► [check] ─► instance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from backend_tensorflow.tensors import Port, Ports, listed
from core import dtypes
from core.completion import tensors_of_the_server, wrong_inputs
from core.config import ModelConfig
from core.dtypes import DataType
from core.errors import CoreError, invalid, unsupported


def check(config: ModelConfig, ports: Ports) -> None:
    """Compare every input and output of the configuration with the model.

    Raises CoreError(INVALID) for a name, datatype, shape or number of inputs that does not fit, and for a
    batch that the model cannot have; CoreError(UNSUPPORTED) for what this backend does not have.
    """
    _check_batch(config, ports)
    inputs = {io.name for io in config.input} | tensors_of_the_server(config)[0]
    for name in sorted(inputs):
        _check_name(name, ports.inputs, "input")
    if missing := [name for name in ports.inputs if name not in inputs]:
        raise wrong_inputs(config.name, inputs, ports.inputs, missing)
    for io in config.input:
        if io.optional:
            raise unsupported(
                f"model '{config.name}': 'optional' of input '{io.name}' is not for TensorFlow models; "
                "remove it from config.pbtxt"
            )
        _check_tensor(config, io, ports.inputs[io.name], ragged=io.allow_ragged_batch)
    scattered = {name for each in config.batch_output for name in each.target_name}
    for output in config.output:
        _check_name(output.name, ports.outputs, "output")
        _check_tensor(config, output, ports.outputs[output.name], ragged=output.name in scattered)
    for state in config.sequence_batching.state:
        _check_name(state.output_name, ports.outputs, "output")
        for port in (ports.inputs[state.input_name], ports.outputs[state.output_name]):
            _check_type(config, port, state.data_type)


def dtype_of(model: str, port: Port) -> DataType:
    """Return the datatype of a tensor. Raises CoreError(UNSUPPORTED) if the protocol has none."""
    if port.dtype is None:
        raise unsupported(
            f"model '{model}': '{port.name}' is of type {port.type}, which cannot be sent to clients; "
            f"export the model with one of {', '.join(d.name for d in dtypes.ALL)}"
        )
    return port.dtype


def dims_of(port: Port, config: ModelConfig) -> tuple[int, ...]:
    """Return the dims of a tensor in a configuration: without the batch, and [1] for a scalar.

    A tensor of any number of dimensions is a vector.
    """
    if port.dims is None:
        return (-1,)
    return port.dims[1 if config.max_batch_size else 0 :] or (1,)


def unexpected(name: str, ports: Iterable[str], kind: str) -> CoreError:
    """Return the error for a tensor that the model does not have."""
    return invalid(
        f"unexpected inference {kind} '{name}', allowed {kind}s are: {', '.join(sorted(ports))}"
    )


def _check_batch(config: ModelConfig, ports: Ports) -> None:
    """Raise CoreError(INVALID) if max_batch_size is not 0 and tensors have no rows for a batch."""
    parts = [port for port in ports.all if port.part]
    if config.max_batch_size and parts:
        raise invalid(
            f"model '{config.name}': max_batch_size is {config.max_batch_size}, but a ragged or sparse "
            f"tensor has no row for each request ({listed(parts)}); set max_batch_size to 0"
        )
    fixed = [port for port in ports.all if port.dims is not None and port.dims[:1] != (-1,)]
    if config.max_batch_size and fixed:
        raise invalid(
            f"model '{config.name}': max_batch_size is {config.max_batch_size}, but the first dimension of a "
            f"tensor is not open ({listed(fixed)}); set max_batch_size to 0, or export the model with None "
            "as the first dimension"
        )


def _check_name(name: str, ports: Mapping[str, Port], kind: str) -> None:
    if name not in ports:
        raise unexpected(name, ports, kind)


def _check_tensor(config: ModelConfig, io: Any, port: Port, *, ragged: bool) -> None:
    """Compare datatype and dims. The elements of a ragged tensor are in one dimension."""
    _check_type(config, port, io.data_type)
    if port.dims is None:
        return
    if ragged:
        if port.dims != (-1,):
            raise invalid(
                f"model '{config.name}': '{port.name}' is ragged, so the model must have one open dimension "
                f"for its elements, and has {port.shape}"
            )
        return
    dims = tuple(io.reshape.shape) if io.HasField("reshape") else tuple(io.dims)
    found = dims_of(port, config)
    fits = len(dims) == len(found) and all(
        a == b or -1 in (a, b) for a, b in zip(dims, found, strict=True)
    )
    if not fits and (dims or found != (1,)):  # dims [] and [1] are the same to a scalar
        raise invalid(
            f"model '{config.name}', tensor '{io.name}': the model has dims {list(found)}, the configuration "
            f"{list(dims)}" + (", both without the batch" if config.max_batch_size else "")
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
