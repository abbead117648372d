"""Complete a configuration from the model file.

config.pbtxt ─► fill ─► [complete] ─► normalise ─► validate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from backend_paddle.check import dims_of, dtype_of, unexpected
from backend_paddle.reading import read_model
from backend_paddle.tensors import Port, Ports
from core.backend import Backend
from core.completion import (
    default_max_batch_size,
    fill_max_batch_size,
    fill_scheduler,
    is_described,
    tensors_of_the_server,
)
from core.config import ModelConfig


def complete(config: ModelConfig, path: Path, backend: Backend) -> None:
    """Fill in inputs, outputs, max_batch_size and dynamic_batching, in place.

    path   the version's folder
    Raises CoreError if the file cannot be read, or if an entry does not fit it.
    """
    if is_described(config) and (
        config.max_batch_size <= 1 or config.WhichOneof("scheduling_choice")
    ):
        return
    complete_from(read_model(config, path).program.ports, config, backend)


def complete_from(ports: Ports, config: ModelConfig, backend: Backend) -> None:
    """Fill in what a configuration lacks; raises the errors of `complete` about entries."""
    if is_described(config):
        if ports.batches:
            fill_scheduler(config)
        return
    if ports.batches:
        if not config.max_batch_size and not _have_batch(config, ports):
            fill_max_batch_size(config, max(1, default_max_batch_size(backend, "paddle")))
        fill_scheduler(config)
    reserved_inputs, reserved_outputs = tensors_of_the_server(config)
    _complete_tensors(config, config.input, ports.inputs, "input", reserved_inputs)
    _complete_tensors(config, config.output, ports.outputs, "output", reserved_outputs)


def _have_batch(config: ModelConfig, ports: Ports) -> bool:
    """Return whether the dims of an entry include the batch: such a model has no max_batch_size."""
    known = {port.name: port for port in ports.all}
    entries: list[Any] = [*config.input, *config.output]
    for io in entries:
        dims = tuple(io.reshape.shape if io.HasField("reshape") else io.dims)
        # A row without dims is written [1].
        if io.name in known and len(dims) == len(known[io.name].dims) and dims != (1,):
            return True
    return False


def _complete_tensors(
    config: ModelConfig,
    entries: Any,
    ports: Mapping[str, Port],
    kind: str,
    reserved: Iterable[str],
) -> None:
    """Fill in data_type and dims where the entries lack them.

    If there are no entries, first add one for each port that is not reserved.
    """
    if not entries:
        for name in ports:
            if name not in reserved:
                entries.add(name=name)
    for entry in entries:
        if (port := ports.get(entry.name)) is None:
            raise unexpected(entry.name, ports, kind)
        entry.data_type = entry.data_type or dtype_of(config.name, port).number
        if not entry.dims:
            entry.dims.extend(dims_of(port, config))
