"""Check a version without loading it, and without DALI: parameters, the file, and both against each other."""

from __future__ import annotations

from pathlib import Path

from backend_dali.check import check
from backend_dali.complete import complete_from
from backend_dali.reading import model_file, read_model
from backend_dali.settings import settings_of
from core.backend import Backend
from core.config import ModelConfig


def check_version(config: ModelConfig, path: Path, backend: Backend) -> bool:
    """Complete the configuration, and compare it with the file; return whether the file says enough.

    path   the version's folder
    Raises the CoreError of a load, except those that only DALI finds in a pipeline. A Python file is not run.
    """
    settings = settings_of(config)
    if model_file(config, path).suffix == ".py":
        return False
    read = read_model(config, path, settings)
    complete_from(read, config)
    check(config, read)
    return True
