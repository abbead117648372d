"""Find the model's file of a version: model.py, or a file that an adapter serves in its place.

A folder that Triton's Python backend can serve is served as in Triton. Adapters are used only if the
configuration names no other file than model.py, and model.py is missing.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from backend_python import adapters
from core.config import ModelConfig
from core.errors import invalid
from core.plugins import installed

DEFAULT_FILE = "model.py"
ADAPTERS = "backend_python.adapters"


def add_adapters() -> dict[str, str]:
    """Register installed adapters here, and return the argument of `adapters.add` for a child.

    This imports no adapter.
    """
    found = {}
    for plugin in installed(ADAPTERS).values():
        for entry in plugin.entries:
            spec = find_spec(entry.module.partition(".")[0])
            if spec is not None and spec.origin is not None:
                found[entry.module] = os.path.dirname(os.path.dirname(spec.origin))
    adapters.add(found)
    return found


def model_file(config: ModelConfig, version: Path) -> Path:
    """Return the file that the model is loaded from; it may be missing.

    Raise CoreError(INVALID) if an adapter refuses a parameter.

    version   directory of the version
    """
    file = version / (config.default_model_filename or DEFAULT_FILE)
    if file.name != DEFAULT_FILE or file.is_file():
        return file
    add_adapters()
    parameters = {name: each.string_value for name, each in config.parameters.items()}
    for adapter in adapters.imported():
        try:
            found = adapter.find(str(version), parameters)
        except ValueError as error:
            raise invalid(f"model '{config.name}': {error}") from error
        if found is not None:
            return Path(found)
    return file
