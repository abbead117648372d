"""Complete a configuration from the compiled module.

config.pbtxt ─► fill ─► [complete] ─► normalise ─► validate.
"""

from __future__ import annotations

from pathlib import Path

from backend_tvm.machine import LoadedModule
from backend_tvm.reading import read_model
from backend_tvm.results import with_outputs
from backend_tvm.settings import settings_of
from core.backend import Backend
from core.completion import is_described
from core.config import ModelConfig
from core.file_signature import is_complete


def complete(config: ModelConfig, path: Path, backend: Backend) -> None:
    """Fill in inputs, outputs, max_batch_size and dynamic_batching, in place.

    path   the version's folder
    Raises CoreError if the files cannot be read, or if an entry does not fit them. If the file does not
    have the outputs, it is loaded and run once.
    """
    if is_complete(config):
        return
    settings = settings_of(config)
    found = read_model(config, path, settings)
    ports = found.ports
    if not (ports.outputs_known or is_described(config)):
        loaded = LoadedModule(found, config.name)
        kind, number = device_of(config)
        ports = with_outputs(ports, loaded, kind, number, settings, config.name)
        loaded.close()
    ports.fill(config, backend, "tvm")


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
