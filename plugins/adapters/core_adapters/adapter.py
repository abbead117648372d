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
    """Return the model's file for a version folder that has no model.py; None if no file is found.

    If `parameters` has MODEL_CLASS, return the path of that class's module, whether or not it exists.
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
    """Return whether the model of this file may change a configuration that has inputs and outputs already.

    True for model-settings.json: its runtime may make the model decoupled.
    """
    return os.path.basename(file) == SETTINGS


def model_of_file(file: str) -> Any:
    """Return a model factory, with auto_complete_config, for a file that is no Python module.

    Appends the file's folder and its parent (for model-settings.json only the folder) to sys.path, because a
    pickle may refer to modules there. Reads model-settings.json now; other files are read at the load.
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
    """Return a model factory for a module without TritonPythonModel; None if the module has nothing to serve.

    A class that the module defines comes first, then a function, then an imported class.
    """
    from core_adapters import functions, seldon

    if seldon.has_class(module, own=True) or not functions.has_function(module):
        return seldon.ClassModel(module, file) if seldon.has_class(module) else None
    return functions.FunctionModel(module, file)


def _add_to_path(*folders: str) -> None:
    """Append these folders to sys.path."""
    for folder in folders:
        if folder not in sys.path:
            sys.path.append(folder)
