"""Check a version without loading it: parameters, and the function against the configuration."""

from __future__ import annotations

from pathlib import Path

from backend_jax.check import check
from backend_jax.installed import INSTALLED, not_installed
from backend_jax.settings import settings_of
from core.backend import Backend
from core.config import ModelConfig

if INSTALLED:
    from backend_jax.reading import model_file, ports_of, read


def check_version(config: ModelConfig, path: Path, backend: Backend) -> bool:
    """Complete the configuration, and compare it with the file; return True: the file says enough.

    path   the version's folder
    Raises the CoreError of a load, but for what only compiling finds.
    """
    if not INSTALLED:
        raise not_installed(config.name)
    settings = settings_of(config)
    ports = ports_of(read(model_file(config, path), config.name), settings, config.name)
    ports.fill(config, backend, "jax")
    check(config, ports)
    return True
