"""What backend_python calls, see backend_python.adapters.Adapter."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import partial
from types import ModuleType
from typing import Any

from core_adapters.formats import BOOSTERS, CLASS_PARAMETER, NAMES, PICKLES, SETTINGS, SKOPS


def find(version: str, parameters: Mapping[str, str]) -> str | None:
    """The file of a version without model.py; of a class that `MODEL_CLASS` names it may be missing.

    Raises ValueError for a MODEL_CLASS that is no name of a class.
    """
    if CLASS_PARAMETER in parameters:
        return os.path.join(version, _file_of_class(parameters[CLASS_PARAMETER]))
    # What speaks of all versions goes before the files of this one.
    above = os.path.join(os.path.dirname(version), SETTINGS)
    places = [
        os.path.join(version, SETTINGS),
        above,
        *(os.path.join(version, each) for each in NAMES),
    ]
    return next((place for place in places if os.path.isfile(place)), None)


def _file_of_class(name: str) -> str:
    """ "Iris" is in Iris.py, as with Seldon Core; "package.module.Class" in package/module.py."""
    parts = name.split(".")
    if not all(part.isidentifier() for part in parts):
        raise ValueError(
            f"parameter {CLASS_PARAMETER} is '{name}', expected the name of a class, such as 'Model' or "
            "'module.Model'"
        )
    return "/".join(parts[:-1] or parts) + ".py"


def serves(file: str) -> bool:
    """Whether `model_of_file` reads a file of this name."""
    return os.path.basename(file) == SETTINGS or file.endswith((SKOPS, *PICKLES, *BOOSTERS))


def describes_more(file: str) -> bool:
    """Whether the model may complete a configuration that has inputs and outputs."""
    return os.path.basename(file) == SETTINGS


def model_of_file(file: str) -> Any:
    """For a file that is no Python: called, it gives the model; it has auto_complete_config.

    The folder and the one above it go to the end of sys.path, as for model.py: what a pickle refers
    to may lie beside it. Reads nothing yet.
    """
    from core_adapters.tabular import TabularModel

    if os.path.basename(file) == SETTINGS:
        from core_adapters.settings import Settings

        _add_to_path(os.path.dirname(file))
        return Settings(file).model()
    folder = os.path.dirname(file)
    _add_to_path(folder, os.path.dirname(folder))
    if file.endswith(BOOSTERS):
        from core_adapters import boosters

        return TabularModel(partial(boosters.open_file, file=file))
    from core_adapters import scikit

    return TabularModel(partial(scikit.open_file, file=file))


def model_of_module(module: ModuleType, file: str) -> Any:
    """The same for a module without TritonPythonModel; None if no class in it has `predict`."""
    from core_adapters import seldon

    return seldon.ClassModel(module, file) if seldon.has_class(module) else None


def _add_to_path(*folders: str) -> None:
    """Let modules in these folders be found, after all others."""
    for folder in folders:
        if folder not in sys.path:
            sys.path.append(folder)
