"""JoinedFolder: a folder whose models join a running server, one of them under a different name."""

from __future__ import annotations

from typing import NamedTuple

from core.repository.folder import FolderRepository
from core.repository.source import Listing, ModelDirectory


class ModelLocation(NamedTuple):
    """The location of a model that joins a running server.

    name       served name, whatever the names of its folder and its configuration
    label      name that its provider uses
    location   the folder that becomes a repository; it also holds the models of an ensemble
    folder     its own folder, directly in `location`
    """

    name: str
    label: str
    location: str
    folder: str


class JoinedFolder(FolderRepository):
    """A repository of all models of a folder. Any thread."""

    def __init__(self, place: ModelLocation):
        super().__init__(place.location)
        self.place = place

    def folder_of(self, name: str) -> str:
        """Return the name of a model's folder; "" for `place.folder`, whose model has another name."""
        if name == self.place.name:
            return self.place.folder
        return "" if name == self.place.folder else name

    def names(self) -> set[str]:
        try:
            found = super().names()
        except FileNotFoundError:  # its provider removed it before it left
            return set()
        if self.place.folder in found:
            found.remove(self.place.folder)
            found.add(self.place.name)
        return found

    def listing(self, name: str) -> Listing | None:
        folder = self.folder_of(name)
        return super().listing(folder) if folder else None

    def read_text(self, name: str, path: str) -> str:
        return super().read_text(self.folder_of(name), path)

    def directory(self, name: str) -> ModelDirectory:
        return super().directory(self.folder_of(name))
