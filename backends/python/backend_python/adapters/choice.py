"""A model's file → the object that the runner calls as it calls TritonPythonModel."""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import Any

from backend_python.adapters.formats import BOOSTERS, SETTINGS


def model_of(file: str) -> Any:
    """For a file that is no Python: called, it gives the model; it has auto_complete_config.

    The folder and the one above it go to the end of sys.path, as for model.py: what a pickle refers
    to may lie beside it. Reads nothing yet.
    """
    from backend_python.adapters.tabular import TabularModel

    if os.path.basename(file) == SETTINGS:
        from backend_python.adapters.settings import Settings

        add_to_path(os.path.dirname(file))
        return Settings(file).model()
    folder = os.path.dirname(file)
    add_to_path(folder, os.path.dirname(folder))
    if file.endswith(BOOSTERS):
        from backend_python.adapters import boosters

        return TabularModel(partial(boosters.open_file, file=file))
    from backend_python.adapters import scikit

    return TabularModel(partial(scikit.open_file, file=file))


def add_to_path(*folders: str) -> None:
    """Let modules in these folders be found, after all others."""
    for folder in folders:
        if folder not in sys.path:
            sys.path.append(folder)
