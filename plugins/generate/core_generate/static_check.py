"""Check a version of an engine's model without loading it: parameters, and what its files say of themselves.

core check ─► [check_version] ─► EngineModel.describe
"""

from __future__ import annotations

from pathlib import Path

from core.backend import Backend
from core.config import ModelConfig
from core_generate.model import check_instances


def check_version(config: ModelConfig, path: Path, backend: Backend) -> bool:
    """Complete the configuration from the files of a version; return True, since they say all.

    path   the version's folder
    Raises the CoreError of a load for a missing or damaged file, and for a wrong parameter.
    """
    assert backend.complete is not None
    backend.complete(config, path, backend)
    check_instances(config)
    return True
