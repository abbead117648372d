"""Refuse a configuration that the pipeline contradicts. Errors name the values of both.

complete ─► … ─► [check] ─► instance.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from backend_dali.reading import ReadModel
from backend_dali.tensors import DTYPES, Port
from core import dtypes
from core.completion import tensors_of_the_server, wrong_inputs
from core.config import ModelConfig
from core.errors import CoreError, invalid, unsupported


def check(config: ModelConfig, read: ReadModel) -> None:
    """Compare every input and output of the configuration with the pipeline.

    Raises CoreError(INVALID) for a name, datatype, number of dims or inputs that does not fit, and for a
    model without batches; CoreError(UNSUPPORTED) for what this backend does not have.
    """
    _check_supported(config, read)
    if config.max_batch_size < 1:
        raise invalid(
            f"model '{config.name}': a pipeline of DALI runs batches; set max_batch_size to 1 or more"
        )
    inputs = {io.name for io in config.input} | tensors_of_the_server(config)[0]
    for name in sorted(inputs):
        if name not in read.ports.inputs:
            raise unexpected(name, read.ports.inputs, "input")
    if missing := [name for name in read.ports.inputs if name not in inputs]:
        raise wrong_inputs(config.name, inputs, read.ports.inputs, missing)
    for io in config.input:
        _check_tensor(config, io, read.ports.inputs[io.name])
        _check_element(config, io, read.ports.inputs[io.name])
    for output in config.output:
        _check_tensor(config, output, read.ports.outputs[output.name])


def check_device(config: ModelConfig, read: ReadModel, kind: str) -> None:
    """Raise CoreError(INVALID) for a pipeline with operators for GPUs on a CPU instance."""
    if kind == "CPU" and read.on_gpu:
        raise invalid(
            f"model '{config.name}': the pipeline in '{read.path}' runs {', '.join(read.on_gpu)} on a GPU, "
            "the instance has KIND_CPU; write it with device='cpu', or change instance_group in config.pbtxt"
        )


def unexpected(name: str, ports: Iterable[str], kind: str) -> CoreError:
    """Return the error for a tensor that the pipeline does not have."""
    return invalid(
        f"unexpected inference {kind} '{name}', allowed {kind}s are: {', '.join(sorted(ports))}"
    )


def dims_of(port: Port) -> list[int] | None:
    """Return the dims of a tensor in a configuration; None if the pipeline does not say how many."""
    return None if port.ndim is None else [-1] * port.ndim or [1]


def _check_supported(config: ModelConfig, read: ReadModel) -> None:
    if not read.ports.inputs:
        raise unsupported(
            f"model '{config.name}': the pipeline in '{read.path}' has no external_source, so a request "
            "cannot give it anything; readers and fn.inputs are for training"
        )
    if config.batch_input or config.batch_output:
        raise unsupported(
            f"model '{config.name}': batch_input and batch_output are not for DALI; remove them from "
            "config.pbtxt"
        )
    if config.sequence_batching.state or config.sequence_batching.control_input:
        raise unsupported(
            f"model '{config.name}': states and controls of sequences are not for DALI; remove them from "
            "config.pbtxt"
        )
    if config.model_transaction_policy.decoupled:
        raise unsupported(
            f"model '{config.name}': a pipeline gives one response to a request; remove decoupled from "
            "config.pbtxt"
        )
    for io in config.input:
        if io.optional:
            raise unsupported(
                f"model '{config.name}': 'optional' of input '{io.name}' is not for DALI; remove it from "
                "config.pbtxt"
            )


def _check_element(config: ModelConfig, io: Any, port: Port) -> None:
    """Raise CoreError(INVALID) if rows of an input without dims may have more than one element."""
    dims = list(io.reshape.shape if io.HasField("reshape") else io.dims)
    if port.ndim == 0 and dims != [1]:
        raise invalid(
            f"model '{config.name}', tensor '{port.name}': its samples have no dims in the pipeline, which "
            f"are dims [1] in the configuration, found {dims}"
        )


def _check_tensor(config: ModelConfig, io: Any, port: Port) -> None:
    asked = dtypes.BY_NUMBER.get(io.data_type)
    if asked is None:  # the configuration is not valid yet: its validation says so
        return
    if asked not in DTYPES.values():
        raise unsupported(
            f"model '{config.name}': '{port.name}' is {asked.config_name}, which DALI lacks; give bytes as "
            "TYPE_UINT8 with dims [ -1 ]"
        )
    if port.dtype not in (None, asked):
        assert port.dtype is not None
        raise invalid(
            f"unable to load model '{config.name}', configuration expects datatype {asked.config_name} for "
            f"'{port.name}', model provides {port.dtype.config_name}"
        )
    dims = list(io.reshape.shape if io.HasField("reshape") else io.dims)
    expected = dims_of(port)
    if expected is not None and len(dims) != len(expected):
        raise invalid(
            f"model '{config.name}', tensor '{port.name}': the pipeline has {len(expected)} dims, the "
            f"configuration {dims}, both without the batch"
        )
