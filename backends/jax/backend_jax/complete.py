"""Complete a configuration from the model file.

config.pbtxt ─► fill ─► [complete] ─► normalise ─► validate.
"""

from __future__ import annotations

from pathlib import Path

from backend_jax.reading import model_file, ports_of, read
from backend_jax.settings import settings_of
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
    exported = read(model_file(config, path), config.name)
    ports_of(exported, settings, config.name).fill(config, backend, "jax")
