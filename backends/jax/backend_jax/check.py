"""Refuse a configuration that the function contradicts. Errors name the values of both.

complete ─► … ─► [check] ─► instance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from backend_jax.tensors import Port, Ports
from core import dtypes
from core.completion import tensors_of_the_server, wrong_inputs
from core.config import ModelConfig
from core.dtypes import DataType
from core.errors import CoreError, invalid, unsupported


def check(config: ModelConfig, ports: Ports) -> None:
    """Compare every input and output of the configuration with the function.

    Raises CoreError(INVALID) for a name, datatype, shape or number of inputs that does not fit, and for a
    batch that the function cannot have; CoreError(UNSUPPORTED) for what this backend does not have.
    """
    _check_supported(config)
    if config.max_batch_size and not ports.batches:
        shapes = ", ".join(f"'{each.name}' [{', '.join(each.written)}]" for each in ports.all)
        raise invalid(
            f"model '{config.name}': max_batch_size is {config.max_batch_size}, but not all tensors of the "
            f"function begin with the same variable dimension, and have it only there ({shapes}); export it "
            "with jax.export.symbolic_shape, or set max_batch_size to 0"
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


def dtype_of(model: str, port: Port) -> DataType:
    """Return the datatype of a tensor. Raises CoreError(UNSUPPORTED) if the protocol has none."""
    if port.dtype is None:
        raise unsupported(
            f"model '{model}': '{port.name}' is of type {port.type}, which cannot be sent to clients; "
            f"convert it to one of {', '.join(d.name for d in dtypes.ALL if d is not dtypes.BYTES)}"
        )
    return port.dtype


def dims_of(port: Port, config: ModelConfig) -> tuple[int, ...]:
    """Return the dims of a tensor in a configuration: without the batch, and [1] for a scalar."""
    return port.dims[1 if config.max_batch_size else 0 :] or (1,)


def unexpected(name: str, ports: Iterable[str], kind: str) -> CoreError:
    """Return the error for a tensor that the function does not have."""
    return invalid(
        f"unexpected inference {kind} '{name}', allowed {kind}s are: {', '.join(sorted(ports))}"
    )


def _check_supported(config: ModelConfig) -> None:
    if config.batch_input or config.batch_output:
        raise unsupported(
            f"model '{config.name}': batch_input and batch_output are not for JAX models; remove them from "
            "config.pbtxt"
        )
    for io in config.input:
        for word in ("optional", "allow_ragged_batch"):
            if getattr(io, word):
                raise unsupported(
                    f"model '{config.name}': '{word}' of input '{io.name}' is not for JAX models; remove it "
                    "from config.pbtxt"
                )


def _check_name(name: str, ports: Mapping[str, Port], kind: str) -> None:
    if name not in ports:
        raise unexpected(name, ports, kind)


def _check_tensor(config: ModelConfig, io: Any, port: Port) -> None:
    _check_type(config, port, io.data_type)
    dims = tuple(io.reshape.shape) if io.HasField("reshape") else tuple(io.dims)
    found = dims_of(port, config)
    fits = len(dims) == len(found) and all(
        a == b or -1 in (a, b) for a, b in zip(dims, found, strict=True)
    )
    if not fits:
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
