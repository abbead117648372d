"""CloudRepository: the models of a bucket as a Repository.

    --model-repository=s3://… ─► [CloudRepository] ─► Listing, CloudDirectory.  Worker threads.

A poll lists objects and fetches only changed configurations. The load of a version fetches its files.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager

from core.errors import internal
from core.repository import (
    Listing,
    ModelDirectory,
    Repository,
    is_flat,
    is_folder_name,
    version_number,
)
from core_cloud.address import place_of
from core_cloud.cache import Cache
from core_cloud.failure import Abandoned, StoreError
from core_cloud.files import Tree
from core_cloud.store import Store

logger = logging.getLogger("core")

# Triton's variables for the parent folder of fetched files.
_MOUNTS = {
    "s3": "TRITON_AWS_MOUNT_DIRECTORY",
    "gs": "TRITON_GCS_MOUNT_DIRECTORY",
    "as": "TRITON_AZURE_MOUNT_DIRECTORY",
}

_EMPTY = Tree({}, frozenset())


def open_cloud(url: str, folder: str = "") -> CloudRepository:
    """Return the repository at a URL of Triton or of fsspec. Call it on the event loop: it sends no request.

    folder   folder for fetched files; "" for a temporary one
    Raises CoreError(INVALID) for a URL that names no bucket.
    """
    place = place_of(url)
    cache = Cache(folder, os.environ.get(_MOUNTS.get(place.scheme, "")))
    return CloudRepository(Store(place, cache.ended), cache)


class CloudRepository(Repository):
    """Models in `<location>/<name>/`. Call only `names`, `directory` and `give_up` on the event loop.

    location   value of --model-repository, without a password
    """

    def __init__(self, store: Store, cache: Cache):
        self.location = store.place.shown
        self._store = store
        self._cache = cache
        self._names: set[str] = set()  # replaced as a whole, by any thread that lists
        self._trees: dict[str, Tree] = {}  # last results of `listing`
        self._now = threading.local()

    def check(self) -> None:
        """Raise CoreError(INTERNAL), with advice, if the place cannot be listed."""
        try:
            self._see(self._store.names(may_be_empty=False))
        except OSError as error:
            raise internal(str(error)) from error

    def look(self) -> None:
        """List the folders of the place again, whose names `names` then returns. Raises StoreError."""
        self._see(self._store.names())

    @contextmanager
    def one_look(self) -> Iterator[None]:
        """List the whole repository once; in the with statement, `listing` on this thread answers from that.

        A poll of a thousand models then takes a few requests instead of a thousand. Raises StoreError at
        the beginning.
        """
        trees = self._store.tree().by_name()
        self._see(trees)
        self._now.trees = trees
        try:
            yield
        finally:
            del self._now.trees

    def names(self) -> set[str]:
        """Return the names of the models that `check`, `look` or `listing` has found last. Any thread."""
        return set(self._names)

    def listing(self, name: str) -> Listing | None:
        """Return path → stamp of the objects of a model; None if there is no such model. Raises StoreError.

        Within `one_look` no request is sent. The objects are kept for `read_text` and `directory`.
        """
        trees: Mapping[str, Tree] | None = getattr(self._now, "trees", None)
        tree = trees.get(name, _EMPTY) if trees is not None else self._store.tree(name)
        if not tree.files and not tree.folders:
            self._trees.pop(name, None)
            if trees is None:
                self.look()
            if name not in self._names:
                return None
        self._names = self._names | {name}
        self._trees[name] = tree
        return tree.listing()

    def read_text(self, name: str, path: str) -> str:
        """Return a text file of the model `name`, as of its last `listing`; fetch it if it is not cached.

        Raises OSError, UnicodeDecodeError, Abandoned; KeyError if the listing does not have it.
        """
        file = self._trees[name].files[path]
        address = f"{self.location}/{name}/{path}"
        return self._cache.read(self._store.fetch, address, file).decode()

    def directory(self, name: str) -> CloudDirectory:
        """Return the folder of a model as of its last `listing`; nothing in it is fetched yet."""
        tree = self._trees.get(name, _EMPTY)
        return CloudDirectory(self._store, self._cache, f"{self.location}/{name}", name, tree)

    def give_up(self) -> None:
        """Let running and later transfers fail, without waiting for their end. Any thread."""
        self._cache.ended.set()

    def close(self) -> None:
        """Remove the temporary files of this process; later transfers fail."""
        self._cache.close()

    def _see(self, names: Iterable[str]) -> None:
        self._names = {name for name in names if is_folder_name(name)}


class CloudDirectory(ModelDirectory):
    """A model's folder on this machine, into which `fetch` puts the files of versions, and shared ones.

    It is made for one listing; a changed one gets another, so the files of a loaded version never change.
    """

    def __init__(self, store: Store, cache: Cache, address: str, name: str, tree: Tree):
        super().__init__(cache.place_for(name), address)
        self._store = store
        self._cache = cache
        self._tree = tree
        self._flat = is_flat(tree.listing())
        self._there: set[str] = set()  # paths of the fetched files
        self._lock = threading.Lock()

    def fetch(self, versions: Collection[int]) -> None:
        """Put the files of these versions, and those that all versions share, into the folder `path`.

        Files that are there stay. Raises CoreError(INTERNAL) if files cannot be fetched or written; those
        fetched before the error are not fetched again.
        """
        begun = time.monotonic()
        with self._lock:
            wanted = {
                path: file
                for path, file in self._tree.files.items()
                if path not in self._there and self._belongs(path, versions)
            }
            try:
                for folder in sorted(self._tree.folders):
                    if self._belongs(folder, versions):
                        (self.path / folder).mkdir(parents=True, exist_ok=True)
                self.path.mkdir(parents=True, exist_ok=True)
                fetched = self._cache.bring(self._store.fetch, self.address, wanted, self.path)
            except (StoreError, Abandoned) as error:
                raise internal(str(error)) from error
            except OSError as error:
                raise internal(
                    f"cannot put the files of '{self.address}' to '{self.path}': {error}"
                ) from error
            self._there.update(wanted)
        if fetched:
            logger.info(
                "%s: fetched %d of %d files, %d bytes, in %.1f s",
                self.address,
                len(fetched),
                len(wanted),
                sum(file.size for file in fetched),
                time.monotonic() - begun,
            )

    def remove(self) -> None:
        """Remove the folder and what it has, unless `holders` says that someone still uses it."""
        with self._lock:
            if not self.holders:
                self._cache.remove(self.address, self._tree.files, self.path)
                self._there.clear()

    def _belongs(self, path: str, versions: Collection[int]) -> bool:
        """Return whether a path below the folder belongs to one of these versions, or to all of the model.

        All files of a folder without version folders do.
        """
        name, slash, _ = path.partition("/")
        number = version_number(name) if slash else None
        return self._flat or number is None or number in versions
