"""Shelf: the bound functions as a repository, beside those that are folders."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from core.embedded.functions.binding import Bound
from core.repository import Listing, ModelDirectory, Repository

_CONFIG = "config.pbtxt"


class Shelf(Repository):
    """What is bound now: one version, 1, of each.

    bound   name → function; replaced as a whole, on the loop thread, so that any thread may read it
    """

    location = "functions of this process"

    def __init__(self) -> None:
        self.bound: Mapping[str, Bound] = {}

    def put(self, bound: Bound) -> None:
        """Bind one, in place of what has its name. Loop thread."""
        self.bound = {**self.bound, bound.name: bound}

    def remove(self, name: str) -> None:
        """Loop thread."""
        self.bound = {key: each for key, each in self.bound.items() if key != name}

    def check(self) -> None:
        """It can always be read."""

    def names(self) -> set[str]:
        return set(self.bound)

    def listing(self, name: str) -> Listing | None:
        """The stamp is that of the binding: the same function, bound again, is loaded again."""
        if (found := self.bound.get(name)) is None:
            return None
        return {_CONFIG: found.stamp, "1/": "", "1/function": found.stamp}

    def read_text(self, name: str, path: str) -> str:
        if (found := self.bound.get(name)) is None or path != _CONFIG:
            raise FileNotFoundError(path)
        return found.config_text

    def directory(self, name: str) -> ModelDirectory:
        """A path where nothing is."""
        return ModelDirectory(Path(f"/nowhere/{name}"))
