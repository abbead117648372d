"""Refuse a configuration that the model contradicts. Errors name the values of both.

complete ─► … ─► [check] ─► instance.
"""

from __future__ import annotations

from backend_tensorflow.tensors import Port, Ports, listed
from core.config import ModelConfig
from core.errors import invalid, unsupported


def check(config: ModelConfig, ports: Ports) -> None:
    """Compare every tensor of the configuration with the model.

    Raises CoreError(INVALID) for a name, datatype, shape or number of inputs that does not fit, and for a
    batch that the model cannot have; CoreError(UNSUPPORTED) for what this backend does not have.
    """
    _check_batch(config, ports)
    for io in config.input:
        if io.optional:
            raise unsupported(
                f"model '{config.name}': 'optional' of input '{io.name}' is not for TensorFlow models; "
                "remove it from config.pbtxt"
            )
    ragged = ragged_tensors(config, ports)
    ports.check(config, loose={port.name for port in ports.all if port in ragged or port.any_rank})
    for port in ragged:
        if not port.any_rank and port.dims != (-1,):
            raise invalid(
                f"model '{config.name}': '{port.name}' is ragged, so the model must have one open dimension "
                f"for its elements, and has {port.shape}"
            )


def _check_batch(config: ModelConfig, ports: Ports) -> None:
    """Raise CoreError(INVALID) if max_batch_size is not 0 and tensors have no rows for a batch."""
    parts = [port for port in ports.all if port.part]
    if config.max_batch_size and parts:
        raise invalid(
            f"model '{config.name}': max_batch_size is {config.max_batch_size}, but a ragged or sparse "
            f"tensor has no row for each request ({listed(parts)}); set max_batch_size to 0"
        )
    fixed = [port for port in ports.all if port.dims[:1] != (-1,)]
    if config.max_batch_size and fixed:
        raise invalid(
            f"model '{config.name}': max_batch_size is {config.max_batch_size}, but the first dimension of a "
            f"tensor is not open ({listed(fixed)}); set max_batch_size to 0, or export the model with None "
            "as the first dimension"
        )


def ragged_tensors(config: ModelConfig, ports: Ports) -> list[Port]:
    """Return the tensors of ragged batches: the elements of all requests are in one dimension."""
    inputs = {io.name for io in config.input if io.allow_ragged_batch}
    outputs = {name for each in config.batch_output for name in each.target_name}
    return [
        *(port for name, port in ports.inputs.items() if name in inputs),
        *(port for name, port in ports.outputs.items() if name in outputs),
    ]
