"""Check a version without loading it: parameters, and the file against the configuration."""

from __future__ import annotations

from pathlib import Path

from backend_litert.check import check
from backend_litert.complete import complete_from
from backend_litert.reading import contents, model_file, read_bytes
from backend_litert.settings import settings_of
from core.backend import Backend
from core.config import ModelConfig


def check_version(config: ModelConfig, path: Path, backend: Backend) -> bool:
    """Complete the configuration, and compare it with the file; return True: the file says enough.

    path   the version's folder
    Raises the CoreError of a load, but for operators that LiteRT does not have.
    """
    settings = settings_of(config)
    file = model_file(config, path)
    found = contents(read_bytes(file, config.name), file, config.name)
    complete_from(found, settings, config, backend)
    check(config, found, settings)
    return True
