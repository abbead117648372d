"""CloudRepository: the models in a bucket, as Repository has them.

    --model-repository=s3://… ─► [CloudRepository] ─► Listing, CloudDirectory.  Worker threads.

Looking lists, and fetches no more than configurations that have changed; files come when a version loads.
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

# Triton's variables for the folder below which it puts what it fetches.
_MOUNTS = {
    "s3": "TRITON_AWS_MOUNT_DIRECTORY",
    "gs": "TRITON_GCS_MOUNT_DIRECTORY",
    "as": "TRITON_AZURE_MOUNT_DIRECTORY",
}

_EMPTY = Tree({}, frozenset())


def open_cloud(url: str, folder: str = "") -> CloudRepository:
    """The repository at a URL of Triton's, or of fsspec's. Loop thread: nothing is asked yet.

    folder   that keeps what is fetched; "" for a temporary one
    Raises CoreError(INVALID) for a URL that names no bucket.
    """
    place = place_of(url)
    cache = Cache(folder, os.environ.get(_MOUNTS.get(place.scheme, "")))
    return CloudRepository(Store(place, cache.ended), cache)


class CloudRepository(Repository):
    """Models in `<location>/<name>/`. Any thread but the loop's, but for `names` and `directory`.

    location   as --model-repository names it, without a password
    """

    def __init__(self, store: Store, cache: Cache):
        self.location = store.place.shown
        self._store = store
        self._cache = cache
        self._names: set[str] = set()  # replaced as a whole, by whoever looks
        self._trees: dict[str, Tree] = {}  # what `listing` saw last
        self._now = threading.local()

    def check(self) -> None:
        """Raise CoreError(INTERNAL) if the place cannot be listed; it says what to do."""
        try:
            self._see(self._store.names(may_be_empty=False))
        except OSError as error:
            raise internal(str(error)) from error

    def look(self) -> None:
        """Bring up to date what `names` tells. Raises StoreError."""
        self._see(self._store.names())

    @contextmanager
    def one_look(self) -> Iterator[None]:
        """Inside of it, in this thread, one listing of everything answers all questions.

        Raises StoreError at the beginning. A thousand models are a few requests then, and not a thousand.
        """
        trees = self._store.tree().by_name()
        self._see(trees)
        self._now.trees = trees
        try:
            yield
        finally:
            del self._now.trees

    def names(self) -> set[str]:
        """Names of the models that the last look saw. Any thread."""
        return set(self._names)

    def listing(self, name: str) -> Listing | None:
        """Every object of the model with what changes when it does; None without any. Raises StoreError."""
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
        """A file of the model, as `listing` saw it last; fetched once. Raises OSError, UnicodeDecodeError."""
        file = self._trees[name].files[path]
        address = f"{self.location}/{name}/{path}"
        return self._cache.read(self._store.fetch, address, file).decode()

    def directory(self, name: str) -> CloudDirectory:
        """The model as `listing` saw it last, not yet fetched."""
        tree = self._trees.get(name, _EMPTY)
        return CloudDirectory(self._store, self._cache, f"{self.location}/{name}", name, tree)

    def give_up(self) -> None:
        """Stop what is being fetched, and fetch nothing from now on. Any thread."""
        self._cache.ended.set()

    def close(self) -> None:
        """Remove what is on this machine; nothing can be fetched any more."""
        self._cache.close()

    def _see(self, names: Iterable[str]) -> None:
        self._names = {name for name in names if is_folder_name(name)}


class CloudDirectory(ModelDirectory):
    """A model's folder, made of what was fetched: shared files, and the versions that somebody loads.

    Each look that finds something else makes another one, so what a version has loaded from never
    changes below it.
    """

    def __init__(self, store: Store, cache: Cache, address: str, name: str, tree: Tree):
        super().__init__(cache.place_for(name), address)
        self._store = store
        self._cache = cache
        self._tree = tree
        self._flat = is_flat(tree.listing())
        self._there: set[str] = set()  # paths of files
        self._lock = threading.Lock()

    def fetch(self, versions: Collection[int]) -> None:
        """Bring the files of these versions, and those that belong to all, to `path`.

        Raises CoreError(INTERNAL); what was fetched by then is not fetched again.
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
        """Remove the folder, unless somebody holds it again."""
        with self._lock:
            if not self.holders:
                self._cache.remove(self.address, self._tree.files, self.path)
                self._there.clear()

    def _belongs(self, path: str, versions: Collection[int]) -> bool:
        """Whether a path is one of those versions', or every version's."""
        name, slash, _ = path.partition("/")
        number = version_number(name) if slash else None
        return self._flat or number is None or number in versions
