"""FolderRepository: a local folder with one folder for each model."""

from __future__ import annotations

import os
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from core.errors import internal
from core.repository.names import is_folder_name
from core.repository.source import Listing, ModelDirectory, Repository, digest_of, version_number


class FolderRepository(Repository):
    """A repository of models in `<location>/<name>/`. Files directly in `location` are no models.

    Links are followed, to models and inside them. Any thread.
    """

    def __init__(self, location: str):
        self.location = location
        self._path = Path(location).absolute()

    def check(self) -> None:
        """Raise CoreError(INTERNAL) if the folder is missing or may not be listed."""
        try:
            os.scandir(self._path).close()
        except OSError as error:
            raise internal(
                f"failed to open model repository '{self.location}': {error.strerror}; "
                "--model-repository takes a folder that holds one folder for each model"
            ) from error

    def names(self) -> set[str]:
        """Return the names of all models, also unreadable ones. Raises OSError if it cannot list them now."""
        with os.scandir(self._path) as entries:
            return {each.name for each in entries if is_folder_name(each.name) and _is_folder(each)}

    def listing(self, name: str) -> Listing | None:
        """Return every entry, each file with its time of change (ns) and size; None without the folder.

        Python's `__pycache__` folders are left out. Raises OSError if a folder or version is unreadable.
        """
        folder = self._path / name
        try:
            return _list(folder) if S_ISDIR(os.stat(folder).st_mode) else None
        except FileNotFoundError:
            return None

    def read_text(self, name: str, path: str) -> str:
        file = self._path / name / path
        if not S_ISREG(os.stat(file).st_mode):  # a pipe would wait for its writer
            raise OSError("it is not a file")
        return file.read_text("utf-8")

    def directory(self, name: str) -> ModelDirectory:
        return ModelDirectory(self._path / name)


def files_of(folder: Path) -> list[str]:
    """Return the sorted relative paths of all files, through links, and of broken links; no `__pycache__`."""
    return sorted(path for path in _list(folder) if not path.endswith("/"))


def stamp_of(folder: Path) -> str:
    """Return a stamp that changes if a name, a time of change or a size of the folder's files changes.

    Python's `__pycache__` folders do not count. May block; raises OSError if a folder may not be read.
    """
    return digest_of([f"{path}\n{stamp}" for path, stamp in _list(folder).items()])


def _list(
    folder: Path | str, prefix: str = "", above: tuple[tuple[int, int], ...] = ()
) -> dict[str, str]:
    """Return the Listing below `folder` without __pycache__; {} if it is gone, or a link to one `above`."""
    found: dict[str, str] = {}
    try:
        here = os.stat(folder)[1:3]  # inode and device
        if here in above:  # a link to a folder that contains it
            return found
        entries = list(os.scandir(folder))
    except FileNotFoundError:  # vanished meanwhile: the next look notices
        return found
    for entry in entries:
        path = prefix + entry.name
        if not _is_folder(entry, not prefix and version_number(entry.name) is not None):
            found[path] = _stamp(entry)
        elif entry.name != "__pycache__":
            found[path + "/"] = ""
            found |= _list(entry.path, path + "/", (*above, here))
    return found


def _is_folder(entry: os.DirEntry[str], unknown: bool = True) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to an inaccessible target, or to itself
        return unknown


def _stamp(entry: os.DirEntry[str]) -> str:
    try:
        status = entry.stat()
    except OSError:  # gone, or a broken link
        return "missing"
    return f"{status.st_mtime_ns} {status.st_size}"
