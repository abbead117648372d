"""Which file of a version is the model: model.py, or what stands in its place.

A folder that Triton's Python backend can serve is served as it does: everything else is looked for
only where the file that the configuration names is missing.
"""

from __future__ import annotations

from pathlib import Path

from backend_python.adapters.formats import CLASS_PARAMETER, SETTINGS
from core.config import ModelConfig
from core.config.autofill import PYTHON_FILES
from core.errors import invalid

DEFAULT_FILE = "model.py"


def model_file(config: ModelConfig, version: Path) -> Path:
    """The file that the model is loaded from; it may be missing.

    version   directory of the version
    CoreError(INVALID) for a MODEL_CLASS that is no name of a class.
    """
    file = version / (config.default_model_filename or DEFAULT_FILE)
    if file.name != DEFAULT_FILE or file.is_file():
        return file
    if CLASS_PARAMETER in config.parameters:
        return version / _file_of_class(
            config.name, config.parameters[CLASS_PARAMETER].string_value
        )
    # What speaks of all versions goes before the files of this one.
    places = [
        version / SETTINGS,
        version.parent / SETTINGS,
        *(version / each for each in PYTHON_FILES),
    ]
    return next((place for place in places if place.is_file()), file)


def _file_of_class(model: str, name: str) -> str:
    """ "Iris" is in Iris.py, as with Seldon Core; "package.module.Class" in package/module.py."""
    parts = name.split(".")
    if not all(part.isidentifier() for part in parts):
        raise invalid(
            f"model '{model}': parameter {CLASS_PARAMETER} is '{name}', expected the name of a class, "
            "such as 'Model' or 'module.Model'"
        )
    return "/".join(parts[:-1] or parts) + ".py"
