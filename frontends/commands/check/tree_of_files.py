"""The files of a model's folder, found without following links out of the repository, and with bounds."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

from core.repository.source import version_number
from frontends.commands.check.finding import Finding

MOST_ENTRIES = 100_000
"""Files and folders of one model."""
MOST_DEPTH = 64
MOST_TEXT_BYTES = 1 << 20
"""Size of a config.pbtxt."""


@dataclass
class Files:
    """What lies in a model's folder.

    listing    relative path → stamp, in the form of core.repository.source.Listing
    findings   links to nothing or out of the repository, unreadable folders, bounds that are exceeded
    outside    whether the folder itself is a link out of the repository, and is not followed
    """

    listing: dict[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    outside: bool = False


def files_of(folder: Path, root: Path, allowed: frozenset[str] = frozenset()) -> Files:
    """Return the files of a model's folder.

    root      the repository. A link to a folder outside of it is not followed
    allowed   paths of links that the caller has made
    """
    found, root = Files(), root.resolve()
    if folder.is_symlink() and str(folder) not in allowed and _leaves(str(folder), root):
        found.outside = True
        found.findings.append(_folder_outside(folder.name, folder))
    else:
        _walk(folder, "", root, allowed, found, ())
    return found


def _walk(
    folder: Path,
    prefix: str,
    root: Path,
    allowed: frozenset[str],
    found: Files,
    above: tuple[tuple[int, int], ...],
) -> None:
    try:
        status = folder.stat()
        entries = sorted(os.scandir(folder), key=lambda each: each.name)
    except OSError as error:
        text = f"the folder cannot be read: {error.strerror}; check its owner and permissions"
        found.findings.append(Finding("error", "layout", text, folder))
        return
    here = (status.st_dev, status.st_ino)
    if here in above:
        return
    if len(above) > MOST_DEPTH:
        text = f"folders are nested more than {MOST_DEPTH} deep; deeper ones are not checked"
        found.findings.append(Finding("warning", "limit", text, folder))
        return
    for entry in entries:
        if len(found.listing) >= MOST_ENTRIES:
            text = f"the model has more than {MOST_ENTRIES} files; the others are not checked"
            found.findings.append(Finding("warning", "limit", text, folder))
            return
        _entry(entry, prefix, root, allowed, found, (*above, here))


def _entry(
    entry: os.DirEntry[str],
    prefix: str,
    root: Path,
    allowed: frozenset[str],
    found: Files,
    above: tuple[tuple[int, int], ...],
) -> None:
    path = prefix + entry.name
    try:
        is_folder = entry.is_dir()
        outside = entry.is_symlink() and entry.path not in allowed and _leaves(entry.path, root)
        stamp = "" if is_folder else _stamp(entry)
    except (OSError, RuntimeError) as error:
        is_folder, outside, stamp = False, False, "missing"
        if not prefix and version_number(entry.name) is not None:
            text = (
                f"version {entry.name} cannot be read: {_reason(error)}; no version can be loaded"
            )
            found.findings.append(Finding("error", "layout", text, Path(entry.path)))
            stamp = "unreadable"
    if outside and stamp != "missing":
        linked = _folder_outside if is_folder else _file_outside
        found.findings.append(linked(path, Path(entry.path)))
    if not is_folder:
        found.listing[path] = stamp
        if stamp == "missing":
            text = f"'{path}' is a link to nothing"
            found.findings.append(Finding("warning", "link", text, Path(entry.path)))
    elif entry.name != "__pycache__":
        found.listing[path + "/"] = ""
        if not outside:
            _walk(Path(entry.path), path + "/", root, allowed, found, above)


def _reason(error: OSError | RuntimeError) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)


def _folder_outside(shown: str, link: Path) -> Finding:
    text = f"{_outside(shown, link)}: that folder is not checked"
    return Finding("warning", "link", text, link)


def _file_outside(shown: str, link: Path) -> Finding:
    text = f"{_outside(shown, link)}: a copy of the repository lacks the file"
    return Finding("note", "link", text, link)


def _outside(shown: str, link: Path) -> str:
    return f"'{shown}' is a link to '{os.path.realpath(link)}', outside of the repository"


def _leaves(path: str, root: Path) -> bool:
    return not Path(os.path.realpath(path)).is_relative_to(root)


def _stamp(entry: os.DirEntry[str]) -> str:
    try:
        status = entry.stat()
    except OSError:
        return "missing"
    return f"{status.st_mtime_ns} {status.st_size}"


def regular_size(path: Path) -> int | None:
    """Return the size of a regular file in bytes, links followed; None if it is anything else or missing."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def read_text(path: Path, most: int = MOST_TEXT_BYTES) -> str:
    """Return the text of a regular file of at most `most` bytes, in UTF-8.

    Raises ValueError with the reason if it is no such file.
    """
    size = regular_size(path)
    if size is None:
        raise ValueError("it is no regular file, or cannot be reached")
    if size > most:
        raise ValueError(f"it has {size} bytes; {most} are the most that a check reads")
    try:
        with path.open("rb") as file:
            return file.read(most).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"it is no UTF-8: {error}") from error
    except OSError as error:
        raise ValueError(f"it cannot be read: {error.strerror}") from error
