"""Check a version without loading it: parameters, and the GGUF file.

core check ─► [check_version] ─► core_generate.gguf
"""

from __future__ import annotations

from pathlib import Path

from core_generate import static_check
from core_generate.gguf import check_model, check_weights, read_metadata

from backend_llamacpp.settings import model_file, settings_of
from core.backend import Backend
from core.config import ModelConfig


def check_version(config: ModelConfig, path: Path, backend: Backend) -> bool:
    """Complete the configuration from the file; return True, since it says all.

    path   the version's folder
    Raises the CoreError of a load for a missing, damaged or cut off file, for one without the metadata of a
    model, and for a wrong parameter.
    """
    file = model_file(config, path)
    metadata = read_metadata(file)
    check_model(file, metadata)
    settings = settings_of(config, path, metadata)
    check_weights(file)
    if settings.projector is not None:
        check_weights(settings.projector)
    return static_check.check_version(config, path, backend)
