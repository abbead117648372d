"""RegisteredFolders: the local repositories of a server as one, so that a running program may change them.

Server.register_model_repository ─► [RegisteredFolders] ─► Catalog

The hook `core_open_repository` finds it by its URL.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from weakref import WeakValueDictionary

from google.protobuf import text_format

from core.config import parse_text
from core.errors import CoreError, internal
from core.repository import FolderRepository, Listing, ModelDirectory, Repository

SCHEME = "registered"

_CONFIG = "config.pbtxt"
_numbers = itertools.count(1)
_opened: WeakValueDictionary[str, RegisteredFolders] = WeakValueDictionary()


class _Folder:
    """One registered folder.

    names   name of a folder in it → name of its model
    """

    def __init__(self, path: str, names: Mapping[str, str]):
        self.path = path
        self.repository = FolderRepository(path)
        self._names = dict(names)
        self._folders = {model: folder for folder, model in names.items()}

    def models(self) -> set[str]:
        return {self._names.get(name, name) for name in self.repository.names()}

    def folder_of(self, model: str) -> str | None:
        """Return the folder of a model; None if another model has that folder."""
        found = self._folders.get(model, model)
        return None if found == model and self._names.get(model, model) != model else found


class RegisteredFolders(Repository):
    """Folders with models. Any thread: the tuple of folders is replaced as a whole."""

    def __init__(self) -> None:
        self.location = f"{SCHEME}://{next(_numbers)}"
        self._folders: tuple[_Folder, ...] = ()
        _opened[self.location] = self

    def paths(self) -> list[str]:
        return [each.path for each in self._folders]

    def add(self, path: str, names: Mapping[str, str] | None = None, check: bool = True) -> None:
        """Add a folder. Raises CoreError(INTERNAL) if `check` is set and it cannot be listed."""
        folder = _Folder(path, names or {})
        if check:
            folder.repository.check()
        self._folders = (*self._folders, folder)

    def remove(self, path: str) -> None:
        self._folders = tuple(each for each in self._folders if each.path != path)

    def check(self) -> None:
        for each in self._folders:
            each.repository.check()

    def names(self) -> set[str]:
        return set().union(*(each.models() for each in self._folders))

    def listing(self, name: str) -> Listing | None:
        """Return the listing of a model. Raises CoreError(INTERNAL) if several folders have the model."""
        found = self._holders(name)
        if len(found) > 1:
            raise internal("model appears in two or more repositories")
        for folder, own in found:
            return folder.repository.listing(own)
        return None

    def read_text(self, name: str, path: str) -> str:
        folder, own = self._holder(name)
        text = folder.repository.read_text(own, path)
        return _renamed(text, name) if own != name and path == _CONFIG else text

    def directory(self, name: str) -> ModelDirectory:
        folder, own = self._holder(name)
        return folder.repository.directory(own)

    def _holders(self, name: str) -> list[tuple[_Folder, str]]:
        return [
            (each, own)
            for each in self._folders
            if (own := each.folder_of(name)) is not None
            and each.repository.listing(own) is not None
        ]

    def _holder(self, name: str) -> tuple[_Folder, str]:
        for each in self._holders(name):
            return each
        raise FileNotFoundError(f"no registered folder has a model '{name}'")


def _renamed(text: str, name: str) -> str:
    """Return a configuration with another name; unchanged if it cannot be parsed: core says why."""
    try:
        config = parse_text(text, _CONFIG)
    except CoreError:
        return text
    config.name = name
    return text_format.MessageToString(config)


def opened(url: str) -> RegisteredFolders | None:
    """Return the folders of a URL; None for another URL."""
    return _opened.get(url)
