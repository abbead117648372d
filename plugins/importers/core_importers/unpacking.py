"""Unpack an archive into a new folder, without trust in its content.

Only files and folders are taken. A path that leads out of the folder, a link, a device, more than MOST_BYTES
or MOST_FILES: the archive is refused, and the folder is removed by the caller.
"""

from __future__ import annotations

import shutil
import stat
import tarfile
import zipfile
from pathlib import Path, PurePosixPath
from typing import IO

from core.errors import CoreError, invalid

MOST_BYTES = 64 << 30
MOST_FILES = 100_000
# A file of a model hardly shrinks to less than a hundredth. Zeros shrink to a thousandth.
_MOST_RATIO = 200
_FREE_BYTES = 64 << 20  # of these it does not matter how far they were compressed
_CHUNK = 1 << 20


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a zip or tar archive into `folder`, which is made.

    Raises CoreError(INVALID) for an archive that is damaged, too large, or holds anything but files and
    folders below it. Raises OSError if the disk is full.
    """
    folder.mkdir(parents=True)
    unpacking = _Unpacking(archive, folder)
    try:
        if zipfile.is_zipfile(archive):
            unpacking.zip()
        elif tarfile.is_tarfile(archive):
            unpacking.tar()
        else:
            raise invalid(f"'{archive}' is neither a zip nor a tar archive")
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, NotImplementedError) as error:
        raise invalid(f"'{archive}' is damaged: {error}") from error
    except RuntimeError as error:  # zipfile, of an encrypted entry
        raise invalid(f"'{archive}' cannot be read: {error}") from error


class _Unpacking:
    def __init__(self, archive: Path, folder: Path):
        self._archive = archive
        self._folder = folder
        self._files = 0
        self._bytes = 0
        size = archive.stat().st_size
        self._most = min(MOST_BYTES, max(_FREE_BYTES, size * _MOST_RATIO))

    def zip(self) -> None:
        with zipfile.ZipFile(self._archive) as archive:
            for entry in archive.infolist():
                kind = stat.S_IFMT(entry.external_attr >> 16)
                if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                    raise self._refused(f"entry '{entry.filename}' is a link or a device")
                path = self._path(entry.filename)
                if entry.is_dir():
                    path.mkdir(parents=True, exist_ok=True)
                else:
                    with archive.open(entry) as content:
                        self._write(path, content)

    def tar(self) -> None:
        with tarfile.open(self._archive) as archive:
            for entry in archive:
                path = self._path(entry.name)
                if entry.isdir():
                    path.mkdir(parents=True, exist_ok=True)
                elif entry.isfile() and (content := archive.extractfile(entry)) is not None:
                    with content:
                        self._write(path, content)
                else:
                    raise self._refused(f"entry '{entry.name}' is a link or a device")

    def _path(self, name: str) -> Path:
        """Return where an entry goes. Raises CoreError for a path out of the folder, or too many entries."""
        self._files += 1
        if self._files > MOST_FILES:
            raise self._refused(f"it has more than {MOST_FILES} entries")
        path = PurePosixPath(name.replace("\\", "/"))
        if path.is_absolute() or ".." in path.parts or ":" in name or "\0" in name:
            raise self._refused(f"entry '{name}' lies outside of it")
        return self._folder / path

    def _write(self, path: Path, content: IO[bytes]) -> None:
        if path.exists():
            raise self._refused(f"it holds '{path.relative_to(self._folder)}' twice")
        path.parent.mkdir(parents=True, exist_ok=True)
        # Bytes are counted while they are written: sizes in an archive may be wrong.
        with open(path, "xb") as file:
            while chunk := content.read(_CHUNK):
                self._bytes += len(chunk)
                if self._bytes > self._most:
                    raise self._refused(
                        f"it unpacks to more than {self._most} bytes, from "
                        f"{self._archive.stat().st_size}. If you trust it, unpack it and import the folder"
                    )
                file.write(chunk)

    def _refused(self, reason: str) -> CoreError:
        return invalid(f"'{self._archive}' was not unpacked: {reason}")


def copy(source: Path, target: Path) -> None:
    """Copy a file or folder; links inside are followed only if they stay inside.

    Raises CoreError(INVALID) for a link out of the folder, OSError if it cannot be read.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_file():
        shutil.copyfile(source, target)
        return
    root = source.resolve()
    for path in source.rglob("*"):
        if path.is_symlink() and not path.resolve().is_relative_to(root):
            raise invalid(f"'{path}' is a link out of '{source}'; copy its target there first")
    ignored = shutil.ignore_patterns("__pycache__", ".git", ".venv")
    shutil.copytree(source, target, ignore=ignored, dirs_exist_ok=True)
