"""Check a version without loading it, and without Paddle: parameters, files, and both against each other."""

from __future__ import annotations

from pathlib import Path

from backend_paddle.check import check
from backend_paddle.reading import read_model
from backend_paddle.settings import settings_of
from core.backend import Backend
from core.config import ModelConfig


def check_version(config: ModelConfig, path: Path, backend: Backend) -> bool:
    """Complete the configuration, and compare it with the files; return True: they say enough.

    path   the version's folder
    Raises the CoreError of a load, but for what only Paddle finds in a program.
    """
    settings_of(config)
    ports = read_model(config, path).program.ports
    ports.fill(config, backend, "paddle")
    check(config, ports)
    return True
