"""FunctionRepository: the bound functions as a model repository, beside those that are folders."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from core.repository import Listing, ModelDirectory, Repository
from frontends.in_process.functions.binding import BoundFunction

_CONFIG = "config.pbtxt"


class FunctionRepository(Repository):
    """The functions that are bound; each has the single version 1.

    functions   name → function. Replaced as a whole on the loop thread, so that any thread may read it
    """

    location = "functions of this process"

    def __init__(self) -> None:
        self.functions: Mapping[str, BoundFunction] = {}

    def put(self, function: BoundFunction) -> None:
        """Add a function, or replace the one that has its name. Loop thread."""
        self.functions = {**self.functions, function.name: function}

    def remove(self, name: str) -> None:
        """Remove the function of that name, if there is one. Loop thread."""
        self.functions = {key: each for key, each in self.functions.items() if key != name}

    def check(self) -> None:
        """Do nothing: this repository can always be read."""

    def names(self) -> set[str]:
        return set(self.functions)

    def listing(self, name: str) -> Listing | None:
        """Return path → stamp of the files that a function stands for; None if no function has that name.

        The stamp is that of the binding: it changes when the name is bound again, and so the model is loaded
        again.
        """
        if (found := self.functions.get(name)) is None:
            return None
        return {_CONFIG: found.stamp, "1/": "", "1/function": found.stamp}

    def read_text(self, name: str, path: str) -> str:
        if (found := self.functions.get(name)) is None or path != _CONFIG:
            raise FileNotFoundError(path)
        return found.config_text

    def directory(self, name: str) -> ModelDirectory:
        """Return a path that does not exist: a function has no files."""
        return ModelDirectory(Path(f"/nowhere/{name}"))
