"""Mount: the folder that KServe mounts, as a repository.

--model-repository=kserve:///mnt/models?name=iris ─► [Mount] ─► a temporary folder with links ─► core
"""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

from core import plugins
from core.errors import CoreError, internal
from core.repository import FolderRepository, Listing, ModelDirectory, PrivateDirectory, Repository
from core_kserve.address import Address
from core_kserve.arrangement import Arrangement, arrangement_of, content, holds_models, is_content


class Mount(Repository):
    """Models in a mount of KServe. Worker threads call it, several at a time; `names` also the event loop.

    With a name, the mount is the model of that name, unless it is a repository. Without one, each folder of
    the mount is a model, such as those that KServe's agent fetches for TrainedModels. A mount that is empty
    at the start is a repository, too.
    """

    def __init__(self, address: Address):
        self.location = address.url
        self._address = address
        self._mount = FolderRepository(str(address.folder))
        self._lock = threading.Lock()
        self._made: dict[str, Arrangement] = {}  # by model, in `_links`; under _lock
        self._links: PrivateDirectory | None = None  # under _lock
        self._has_one = bool(address.name)

    def check(self) -> None:
        """Find out whether the mount is a repository. Raises CoreError(INTERNAL) if it cannot be listed."""
        try:
            folder = self._address.folder
            is_repository = not content(folder) or holds_models(folder, plugins.formats())
        except OSError as error:
            raise internal(
                f"failed to open model repository '{self.location}': {error.strerror}; KServe mounts the "
                "content of `storageUri` at /mnt/models"
            ) from error
        self._has_one = bool(self._address.name) and not is_repository

    def names(self) -> set[str]:
        """Return the names of all models. Raises OSError if the mount cannot be listed now."""
        if self._has_one:
            return {self._address.name}
        return {each for each in self._mount.names() if is_content(each)}

    def listing(self, name: str) -> Listing | None:
        """Return the listing of a model's folder as core reads it; None without one, or for another name.

        Raises OSError for a folder that cannot be read, and for one whose content is no model: it says why.
        """
        if not (name == self._address.name if self._has_one else is_content(name)):
            return None
        return FolderRepository(str(self._arranged(name))).listing(name)

    def read_text(self, name: str, path: str) -> str:
        return (self._arranged(name) / name / path).read_text("utf-8")

    def directory(self, name: str) -> ModelDirectory:
        return ModelDirectory(self._arranged(name) / name)

    def close(self) -> None:
        """Remove the links. Files in the mount stay."""
        with self._lock:
            if self._links is not None:
                self._links.remove()
            self._links = None
            self._made.clear()

    def _arranged(self, name: str) -> Path:
        """Return the folder of the links, in which the folder `name` is as the mount says now."""
        source = self._address.folder if self._has_one else self._address.folder / name
        try:
            wanted = (
                arrangement_of(source, name, plugins.formats(), trust=self._address.trust)
                if source.is_dir()
                else None
            )
        except CoreError as error:
            raise OSError(error.message) from error
        with self._lock:
            if self._links is None:
                self._links = PrivateDirectory()
            target = self._links.path / name
            if self._made.get(name) != wanted:
                _remove(target)
                self._made.pop(name, None)
                if wanted is not None:
                    wanted.make(target)
                    self._made[name] = wanted
            return self._links.path


def _remove(target: Path) -> None:
    if target.is_symlink():
        target.unlink()
    else:
        shutil.rmtree(target, ignore_errors=True)
