"""The errors for the file of a version that is missing or cannot be read.

Model.load ─► [model_file] ─► the framework.
"""

from __future__ import annotations

from pathlib import Path

from core.errors import CoreError, internal, unavailable

_LFS_POINTER = b"version https://git-lfs"


def not_found(path: Path, model: str) -> CoreError:
    """Return the error (UNAVAILABLE) for a version without its file; it lists the entries of the folder."""
    folder = path.parent
    there = sorted(map(_described, folder.iterdir())) if folder.is_dir() else []
    return unavailable(
        f"unable to find '{path}' for model '{model}' (its folder has {', '.join(there) or 'nothing'}); "
        "put the model there, or name its file with default_model_filename in config.pbtxt"
    )


def _described(entry: Path) -> str:
    if entry.is_file():
        return entry.name
    if entry.is_dir():
        return f"{entry.name} (a folder)"
    return f"{entry.name} ({'a link to nothing' if entry.is_symlink() else 'no regular file'})"


def check_readable(path: Path, model: str) -> None:
    """Raise CoreError(INTERNAL) for a file that cannot be opened and read, and for a pointer of Git LFS.

    The errors of frameworks do not show these causes.
    """
    try:
        with path.open("rb") as file:
            head = file.read(len(_LFS_POINTER))
    except OSError as error:
        raise internal(
            f"model '{model}': cannot load '{path}': the server may not read it: {error.strerror}; check "
            "its owner and permissions"
        ) from error
    if head == _LFS_POINTER:
        raise internal(
            f"model '{model}': cannot load '{path}': the file is only a pointer of Git LFS; fetch the model "
            "itself with: git lfs pull"
        )
