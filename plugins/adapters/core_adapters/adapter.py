"""The functions that backend_python calls; backend_python.adapters.Adapter defines them."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import partial
from types import ModuleType
from typing import Any

from core_adapters.formats import BOOSTERS, CLASS_PARAMETER, NAMES, PICKLES, SETTINGS, SKOPS


def find(version: str, parameters: Mapping[str, str]) -> str | None:
    """Return the model's file of a version without model.py; None if there is none.

    With the parameter MODEL_CLASS, return the path of its module; that file may not exist.
    Raises ValueError if MODEL_CLASS is no valid class name.
    """
    if CLASS_PARAMETER in parameters:
        return os.path.join(version, _file_of_class(parameters[CLASS_PARAMETER]))
    # model-settings.json, of the version or of all versions, takes precedence over model files.
    first, *others = (os.path.join(version, each) for each in NAMES)
    places = [first, os.path.join(os.path.dirname(version), SETTINGS), *others]
    return next((place for place in places if os.path.isfile(place)), None)


def _file_of_class(name: str) -> str:
    """Return the file of a class: Iris.py for "Iris", as in Seldon Core; a/b.py for "a.b.Class"."""
    parts = name.split(".")
    if not all(part.isidentifier() for part in parts):
        raise ValueError(
            f"parameter {CLASS_PARAMETER} is '{name}', expected the name of a class, such as 'Model' or "
            "'module.Model'"
        )
    return "/".join(parts[:-1] or parts) + ".py"


def serves(file: str) -> bool:
    """Return whether `model_of_file` can open a file of this name."""
    return os.path.basename(file) == SETTINGS or file.endswith((SKOPS, *PICKLES, *BOOSTERS))


def describes_more(file: str) -> bool:
    """Return whether the model may add to a configuration that already has inputs and outputs."""
    return os.path.basename(file) == SETTINGS


def model_of_file(file: str) -> Any:
    """Return a model factory for a file that is no Python module; it also has auto_complete_config.

    Appends the file's folder and its parent (for model-settings.json only the folder) to sys.path: a pickle
    may refer to modules there. Does not read a model file yet, only model-settings.json.
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
    """Return a model factory for a module without TritonPythonModel; None if it has nothing to serve."""
    from core_adapters import functions, seldon

    if seldon.has_class(module, own=True) or not functions.has_function(module):
        return seldon.ClassModel(module, file) if seldon.has_class(module) else None
    return functions.FunctionModel(module, file)


def _add_to_path(*folders: str) -> None:
    """Append these folders to sys.path."""
    for folder in folders:
        if folder not in sys.path:
            sys.path.append(folder)
