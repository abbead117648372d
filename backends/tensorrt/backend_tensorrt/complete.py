"""Complete a configuration from the engine.

config.pbtxt ─► fill ─► [complete] ─► normalise ─► validate.  The rules are those of Triton's backend.
"""

from __future__ import annotations

import logging
from typing import Any

from backend_tensorrt.check import unservable
from backend_tensorrt.facts import Facts, Port
from core.completion import fill_scheduler, tensors_of_the_server
from core.config import ModelConfig

logger = logging.getLogger("core")


def complete_with(config: ModelConfig, facts: Facts) -> None:
    """Fill in inputs, outputs, max_batch_size and dynamic_batching, in place.

    Raises CoreError(UNSUPPORTED) for a tensor that the protocol cannot carry.
    """
    _complete_batching(config, facts)
    inputs, outputs = tensors_of_the_server(config)
    _complete_tensors(config, config.input, facts.inputs, inputs)
    _complete_tensors(config, config.output, facts.outputs, outputs)


def _complete_batching(config: ModelConfig, facts: Facts) -> None:
    if not config.max_batch_size and facts.batches and not _says_whole_shapes(config, facts):
        config.max_batch_size = facts.most_rows
        logger.warning(
            "autofilled max_batch_size to %d for model '%s', the largest batch of its optimization "
            "profiles, since no max_batch_size is specified in model configuration",
            config.max_batch_size,
            config.name,
        )
    fill_scheduler(config)


def _says_whole_shapes(config: ModelConfig, facts: Facts) -> bool:
    """Return whether an entry has as many dims as the engine's tensor. Shape tensors do not count.

    If so, its dims include the first dimension, and the configuration does not batch.
    """
    ports = {port.name: port for port in facts.ports}
    tensors: list[Any] = [*config.input, *config.output]
    return any(
        len(io.dims) == len(ports[io.name].dims)
        for io in tensors
        if io.name in ports and io.dims and not ports[io.name].on_host
    )


def _complete_tensors(
    config: ModelConfig, entries: Any, ports: dict[str, Port], reserved: set[str]
) -> None:
    """Fill in data_type and dims where the entries lack them, and set their flags for shape and format.

    If there are no entries, first add one for each port that is not reserved. An entry that the engine does
    not have stays as it is.
    reserved   names of tensors that the server fills or takes
    Raises CoreError(UNSUPPORTED) for a tensor that the protocol cannot carry.
    """
    if not entries:
        for name in ports:
            if name not in reserved:
                entries.add(name=name)
    for entry in entries:
        if (port := ports.get(entry.name)) is None:
            continue  # `check` refuses it later, and lists the names
        if port.dtype is None:
            raise unservable(config.name, port)
        entry.data_type = entry.data_type or port.dtype.number
        entry.is_shape_tensor = port.on_host
        entry.is_non_linear_format_io = not port.linear
        if not entry.dims:
            entry.dims.extend(client_dims(port, bool(config.max_batch_size)) or (1,))


def client_dims(port: Port, batches: bool) -> tuple[int, ...]:
    """Return the dims that clients see.

    With `batches`, clients see neither the batch dimension nor the first value of a shape tensor.
    """
    if not batches:
        return port.dims
    if port.on_host:
        return tuple(size if size < 0 else size - 1 for size in port.dims)
    return port.dims[1:]
