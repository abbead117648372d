"""ModelSource: the state of a model's files at one moment. Repository: the place that holds models."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from core.config import ModelConfig
from core.repository.names import key_of

SETTINGS = "model-settings.json"
"""File of MLServer's repositories, in which a model may have no version folders."""

Listing = Mapping[str, str]
"""Every entry below a model's folder: relative path with "/" → stamp that changes with the entry.

Folders end with "/" and have the stamp "": only their content counts, not their time of change.
"""


class ModelDirectory:
    """A model's folder on this machine, held by the versions that read it.

    path      the folder; valid from `fetch` until its last holder calls `let_go`
    address   origin of the files, always equal for the same origin; by default `path`
    origin    the directory that this one was made from, and holds; None for an original one

    `holders` is counted on the loop thread; the other methods block and run on worker threads.
    """

    origin: ModelDirectory | None = None

    def __init__(self, path: Path, address: str = ""):
        self.path = path
        self.address = address or str(path)
        self.holders = 0

    def hold(self) -> None:
        """Add one user of the folder. Loop thread."""
        self.holders += 1

    def let_go(self) -> bool:
        """Remove one user. Return whether it was the last: if so, the caller calls `remove`. Loop thread."""
        self.holders -= 1
        return self.holders == 0

    def fetch(self, versions: Collection[int]) -> None:
        """Copy the files of these versions, and those that all versions share, to `path`.

        Called for each load of a version, by several threads, and also if the files are present.
        For a local folder it does nothing.
        """

    def unload(self) -> None:
        """Handle that versions loaded from here take no more requests; some requests may still run."""

    def remove(self) -> None:
        """Remove the files that `fetch` or the creator of this object made. A user's own folder stays."""


class Repository(ABC):
    """A place with models, one folder for each. Worker threads call it, several at a time.

    location   value of --model-repository

    The first five methods are enough for a local folder.
    """

    location: str

    @abstractmethod
    def check(self) -> None:
        """Raise CoreError if the place cannot be read at all."""

    @abstractmethod
    def names(self) -> set[str]:
        """Return the names of all models. Raises OSError when they cannot be listed now.

        Also called on the event loop: a remote repository returns the names of its last `look`.
        """

    @abstractmethod
    def listing(self, name: str) -> Listing | None:
        """Return the listing of a model's folder, None without one. Raises OSError if unreadable."""

    @abstractmethod
    def read_text(self, name: str, path: str) -> str:
        """Return a small text file (the configuration) of a model. Raises OSError, UnicodeDecodeError."""

    @abstractmethod
    def directory(self, name: str) -> ModelDirectory:
        """Return the folder from which the model will be loaded, not yet fetched. Raises OSError."""

    def look(self) -> None:  # noqa: B027  # optional, like those that follow
        """Update what `names` returns. Raises OSError when the place cannot be listed now."""

    def one_look(self) -> AbstractContextManager[None]:
        """Return a context in which one listing may answer all questions of this thread."""
        return nullcontext()

    def give_up(self) -> None:  # noqa: B027
        """Stop running fetches, because the server begins to stop. Any thread."""

    def close(self) -> None:  # noqa: B027
        """Remove the fetched files, after the last model."""


@dataclass(frozen=True)
class ModelSource:
    """A model that can be loaded, in its current state.

    directory     the folder with its files
    config        parsed and filled in, not completed by the backend; with `agents` only parsed, because
                  agents may change the files
    versions      version number → stamp of the version's folder
    shared        stamp of all other files except the configuration (labels, warmup data, …)
    config_stamp  stamp of the configuration file, "" if there is none
    overridden    whether its configuration came with a load request; then no other source equals it
    flat          whether the model's folder is also the folder of its only version
    namespace     distinguishes it from other models with the same name; None without namespaces
    folder        folder name that may determine its backend, if it is not the model's name; else ""
    hint          end of the error if no version is there: what is wrong with the folder
    """

    name: str
    directory: ModelDirectory
    config: ModelConfig
    versions: Mapping[int, str]
    shared: str
    config_stamp: str
    overridden: bool = False
    flat: bool = False
    namespace: str | None = None
    folder: str = ""
    hint: str = ""

    def path(self, version: int) -> Path:
        """Return a version's folder, which is the model's folder if `flat`."""
        return self.directory.path if self.flat else self.directory.path / str(version)

    @property
    def key(self) -> str:
        """Return the model's key: its name, or with namespaces `<namespace>::<name>`."""
        return key_of(self.namespace, self.name)

    @property
    def agents(self) -> bool:
        """Return whether repository agents must run before the files are used."""
        return len(self.config.model_repository_agents.agents) > 0

    @property
    def steps(self) -> tuple[str, ...]:
        """Return the keys of the models that an ensemble is composed of, each once; empty for others."""
        named = self.namespace is not None
        return tuple(
            dict.fromkeys(
                key_of(step.model_namespace if named else None, step.model_name)
                for step in self.config.ensemble_scheduling.step
            )
        )


def version_number(folder: str) -> int | None:
    """Return the version number of a folder name: digits, first not 0, below 2**63. None for other names."""
    if folder.isascii() and folder.isdigit() and not folder.startswith("0"):
        number = int(folder)
        return number if number < 2**63 else None
    return None


def is_configuration(path: str) -> bool:
    """Return whether a path in a model's folder is config.pbtxt or lies in configs/."""
    return path == "config.pbtxt" or path.startswith("configs/")


def is_flat(listing: Listing) -> bool:
    """Return whether a folder has the MLServer layout: model-settings.json and no version folders."""
    folders = (path.partition("/") for path in listing)
    return SETTINGS in listing and not any(
        slash and version_number(name) is not None for name, slash, _ in folders
    )


def version_stamps(listing: Listing) -> dict[int, str]:
    """Return the stamp of each version's folder, by number. A flat folder is version 1."""
    if is_flat(listing):
        return {1: shared_stamp(listing)}
    entries: dict[int, list[str]] = {}
    for path, stamp in listing.items():
        folder, slash, _ = path.partition("/")
        number = version_number(folder) if slash else None
        if number is not None:
            entries.setdefault(number, []).append(f"{path}\n{stamp}")
    return {number: digest_of(found) for number, found in sorted(entries.items())}


def shared_stamp(listing: Listing) -> str:
    """Return the stamp of the files that all versions share, without the configuration files."""
    return digest_of(
        f"{path}\n{stamp}"
        for path, stamp in listing.items()
        if version_number(path.partition("/")[0]) is None and not is_configuration(path)
    )


def first_version_entries(listing: Listing) -> frozenset[str]:
    """Return the names in the first version folder in text order; folders end with "/".

    They include model-settings.json if it lies beside the versions.
    """
    beside = frozenset({SETTINGS} & set(listing))
    folders = sorted(
        path
        for path in listing
        if path.endswith("/") and path.count("/") == 1 and version_number(path[:-1]) is not None
    )
    if not folders:
        return beside
    names = (path.removeprefix(folders[0]) for path in listing if path.startswith(folders[0]))
    return beside.union(name for name in names if name and "/" not in name[:-1])


def digest_of(entries: Iterable[str]) -> str:
    """Return a digest of the entries, independent of their order."""
    text = "\n\n".join(sorted(entries))
    return hashlib.blake2b(text.encode(errors="surrogateescape")).hexdigest()
