"""Check a version without loading it, and without TVM: parameters, files, and both against each other."""

from __future__ import annotations

from pathlib import Path

from backend_tvm.check import check
from backend_tvm.reading import read_model
from backend_tvm.settings import settings_of
from core.backend import Backend
from core.config import ModelConfig


def check_version(config: ModelConfig, path: Path, backend: Backend) -> bool:
    """Complete the configuration, and compare it with the files; return whether they say enough.

    path   the version's folder
    Raises the CoreError of a load, except those of outputs whose shapes are all fixed: only a run finds them.
    """
    settings = settings_of(config)
    ports = read_model(config, path, settings).ports
    ports.fill(config, backend, "tvm")
    check(config, ports)
    return ports.outputs_known
