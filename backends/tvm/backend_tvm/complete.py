"""Complete a configuration from the compiled module.

config.pbtxt ─► fill ─► [complete] ─► normalise ─► validate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from backend_tvm.check import dims_of, dtype_of, unexpected
from backend_tvm.machine import LoadedModule
from backend_tvm.reading import read_model
from backend_tvm.results import with_outputs
from backend_tvm.settings import settings_of
from backend_tvm.tensors import Port, Ports
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
    Raises CoreError if the files cannot be read, or if an entry does not fit them. If the file does not
    have the outputs, it is loaded and run once.
    """
    if is_described(config) and (
        config.max_batch_size <= 1 or config.WhichOneof("scheduling_choice")
    ):
        return
    settings = settings_of(config)
    found = read_model(config, path, settings)
    ports = found.ports
    if ports.outputs is None and not is_described(config):
        loaded = LoadedModule(found, config.name)
        kind, number = device_of(config)
        ports = with_outputs(ports, loaded, kind, number, settings, config.name)
        loaded.close()
    complete_from(ports, config, backend)


def complete_from(ports: Ports, config: ModelConfig, backend: Backend) -> None:
    """Fill in what a configuration lacks; raises the errors of `complete` about entries.

    Outputs that are not known stay as they are.
    """
    if is_described(config):
        if ports.batches:
            fill_scheduler(config)
        return
    if ports.batches:
        if not config.max_batch_size and not _have_batch(config, ports):
            fill_max_batch_size(config, max(1, default_max_batch_size(backend, "tvm")))
        fill_scheduler(config)
    reserved_inputs, reserved_outputs = tensors_of_the_server(config)
    _complete_tensors(config, config.input, ports.inputs, "input", reserved_inputs)
    if ports.outputs is not None:
        _complete_tensors(config, config.output, ports.outputs, "output", reserved_outputs)


def device_of(config: ModelConfig) -> tuple[str, int]:
    """Return the kind and number of the device of the first group that names one; else that of the CPU.

    A group that names neither gets CPU instances, as the backend asks for in `Backend.instances`.
    """
    for group in config.instance_group:
        if group.gpus:
            return "GPU", group.gpus[0]
        if group.kind == group.KIND_GPU:
            return "GPU", 0
        if group.kind == group.KIND_CPU:
            return "CPU", 0
    return "CPU", 0


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
