"""Adapters: packages that make a TritonPythonModel from files of another kind.

A distribution provides an adapter by an entry point of the group backend_python.adapters, whose value is a
module with the functions of `Adapter`. The server finds it (server/found.py) and sends its folder to the
process that runs the model, because the model's environment does not contain the adapter.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, SourceFileLoader
from types import ModuleType
from typing import Any, Protocol, cast


class Adapter(Protocol):
    """A module. Its import needs Python 3.9, the standard library, backend_python.api and its own package."""

    def find(self, version: str, parameters: Mapping[str, str]) -> str | None:
        """Return the file that this adapter serves in a version without model.py. Runs in the server.

        version      the version's directory
        parameters   parameters of config.pbtxt
        Raises ValueError with the reason for an invalid parameter.
        """

    def serves(self, file: str) -> bool:
        """Return whether `model_of_file` reads a file of this name."""

    def describes_more(self, file: str) -> bool:
        """Return whether the model may add to a configuration with inputs and outputs. Runs in the server."""

    def model_of_file(self, file: str) -> Any:
        """Return a function that loads the model of a file that is not Python."""

    def model_of_module(self, module: ModuleType, file: str) -> Any:
        """Return a function that makes the model of a module without TritonPythonModel, or None."""


_places: dict[str, str] = {}  # module → the folder that holds its package


class _Finder:
    """Finder of the adapters' packages in the server's folders; it finds no other package there."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        top = name.partition(".")[0]
        folders = (place for module, place in _places.items() if module.partition(".")[0] == top)
        if (folder := next(folders, None)) is None:
            return None
        finder = FileFinder(path[0] if path else folder, (SourceFileLoader, SOURCE_SUFFIXES))
        return finder.find_spec(name)


def add(places: Mapping[str, str]) -> None:
    """Make adapters importable. The argument maps a module's name to the folder that contains its package."""
    _places.update(places)
    if _places and _Finder not in sys.meta_path:
        sys.meta_path.insert(0, cast(Any, _Finder))


def folders() -> list[str]:
    """Return the folders of the packages of adapters, each with a separator at its end."""
    return [os.path.join(place, name.partition(".")[0], "") for name, place in _places.items()]


def imported() -> list[Adapter]:
    """Import the adapters that were added and return them."""
    return [cast(Adapter, importlib.import_module(name)) for name in sorted(_places)]


def adapter_of(file: str) -> Adapter | None:
    """Return the adapter that reads a file, None if no adapter does."""
    return next((each for each in imported() if each.serves(file)), None)
