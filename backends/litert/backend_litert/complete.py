"""Complete a configuration from the model file.

config.pbtxt ─► fill ─► [complete] ─► normalise ─► validate.
"""

from __future__ import annotations

from pathlib import Path

from backend_litert.reading import Contents, contents, model_file, read_bytes
from backend_litert.settings import Settings, settings_of
from core.backend import Backend
from core.config import ModelConfig
from core.file_signature import is_complete


def complete(config: ModelConfig, path: Path, backend: Backend) -> None:
    """Fill in inputs, outputs, max_batch_size and dynamic_batching, in place.

    path   the version's folder
    Raises CoreError if the file cannot be read, or if an entry does not fit it.
    """
    if is_complete(config):
        return
    settings = settings_of(config)
    file = model_file(config, path)
    found = contents(read_bytes(file, config.name), file, config.name)
    complete_from(found, settings, config, backend)


def complete_from(
    found: Contents, settings: Settings, config: ModelConfig, backend: Backend
) -> None:
    """Fill in what a configuration lacks; raises the errors of `complete` about entries."""
    ports = found.ports(settings.signature, config.name)
    ports.as_sent(settings.float_tensors).fill(config, backend, "litert")
