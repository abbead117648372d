"""Complete a configuration from the model file.

config.pbtxt ─► fill ─► [complete] ─► normalise ─► validate.
"""

from __future__ import annotations

from pathlib import Path

from backend_paddle.reading import read_model
from core.backend import Backend
from core.config import ModelConfig
from core.file_signature import is_complete


def complete(config: ModelConfig, path: Path, backend: Backend) -> None:
    """Fill in inputs, outputs, max_batch_size and dynamic_batching, in place.

    path   the version's folder
    Raises CoreError if the file cannot be read, or if an entry does not fit it.
    """
    if not is_complete(config):
        read_model(config, path).program.ports.fill(config, backend, "paddle")
