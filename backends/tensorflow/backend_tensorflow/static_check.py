"""Check a version without loading it: parameters, and the model against the configuration."""

from __future__ import annotations

from pathlib import Path

from backend_tensorflow.check import check
from backend_tensorflow.complete import complete_from, read_ports
from backend_tensorflow.settings import server_settings_of, settings_of
from core.backend import Backend
from core.config import ModelConfig


def check_version(config: ModelConfig, path: Path, backend: Backend) -> bool:
    """Complete the configuration, and compare it with the model; return True: the file says enough.

    A SavedModel does not need TensorFlow, a GraphDef does.

    path   the version's folder
    Raises the CoreError of a load, but for what only TensorFlow finds in a graph.
    """
    settings_of(config)
    server_settings_of(backend.config)
    ports = read_ports(config, path)
    complete_from(ports, config, backend)
    check(config, ports)
    return True
