"""Arrangement: makes the folder of a model from what lies in a folder of KServe.

    folder ─► [arrangement_of] ─► what it holds ─► Arrangement.make ─► NAME/, with links into the folder

The storage initializer copies what `storageUri` names. That may be a repository of core and Triton, the
folder of one model, the files of one version, or one file with any name. Worker threads; may block.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from core.config.formats import Formats
from core.errors import CoreError, invalid
from core.repository import version_number
from frontends.commands.model_file import TRUSTED, ModelFile, make_model, model_file
from frontends.commands.paths import is_model

_MOST_SHOWN = 5  # entries of a folder in an error


@dataclass(frozen=True)
class Arrangement:
    """How the folder of a model is made: exactly one of the first three is set.

    folder       the folder of a model, with its versions
    files        a folder with the files of a version
    file         one file
    trust        whether a config.pbtxt is written that trusts the files to hold code
    entries      names in the mounted folder on which the links depend, sorted
    changed_ns   time of the file's last change: it names others that get links
    """

    folder: Path | None = None
    files: Path | None = None
    file: ModelFile | None = None
    trust: bool = False
    entries: tuple[str, ...] = ()
    changed_ns: int = 0

    def make(self, target: Path) -> None:
        """Make the folder `target`, which must not exist, with links. Raises OSError."""
        if self.folder is not None and not self.trust:
            target.symlink_to(self.folder, target_is_directory=True)
        elif self.folder is not None:
            target.mkdir()
            for each in self.entries:
                (target / each).symlink_to(self.folder / each, (self.folder / each).is_dir())
            _trust(target)
        elif self.file is not None:
            make_model(self.file, target, link=True)
        elif self.files is not None:
            target.mkdir()
            (target / "1").symlink_to(self.files, target_is_directory=True)
            for each in self.entries:
                (target / each).symlink_to(self.files / each)
            if self.trust:
                _trust(target)


def _trust(target: Path) -> None:
    """Write the config.pbtxt. Its time is always the same: versions are loaded anew if it changes."""
    config = target / "config.pbtxt"
    config.write_text(TRUSTED)
    os.utime(config, (0, 0))


def arrangement_of(folder: Path, name: str, formats: Formats, *, trust: bool) -> Arrangement:
    """Return how the model `name` is made from a folder.

    trust   whether the user trusts the code in files; a config.pbtxt in the folder decides for itself
    Raises CoreError(INVALID), with what the folder holds: no file of a known format, or several.
    """
    entries = sorted(each.name for each in content(folder))
    # MLServer's layout has no versions.
    if "model-settings.json" in entries or _has_versions(folder, entries):
        if trust and "config.pbtxt" not in entries:
            return Arrangement(folder=folder, trust=True, entries=tuple(entries))
        return Arrangement(folder=folder)
    if "config.pbtxt" in entries:
        return Arrangement(files=folder, entries=("config.pbtxt",))
    names = _names(folder, entries)
    found = formats.found_in(names)
    if found is None:
        file = _only_file(folder, entries, name, formats, trust)
        return Arrangement(
            file=file, entries=tuple(entries), changed_ns=file.path.stat().st_mtime_ns
        )
    present = [each for each in formats if each.is_in(names) and each.backend == found.backend]
    if holds_code := all(each.trust for each in present):
        _check_trust(folder / present[0].file, trust)
    return Arrangement(files=folder, trust=holds_code)


def _check_trust(path: Path, trust: bool) -> None:
    if not trust:
        raise invalid(
            f"'{path}' can hold code, and to read it is to run that code with the rights of the server; it "
            "was not read. If you trust everyone who could write it, add trust=true to the URL"
        )


def holds_models(folder: Path, formats: Formats) -> bool:
    """Return whether a folder is a repository: no model itself, but with the folder of a model in it.

    A folder with a file that a format names is a model, whatever its other folders hold.
    """
    if is_model(folder):
        return False
    found = content(folder)
    names = _names(folder, [each.name for each in found])
    if any(each.is_in(names) for each in formats):
        return False
    return any(is_model(each) for each in found if each.is_dir())


def _has_versions(folder: Path, entries: list[str]) -> bool:
    return any(version_number(each) is not None and (folder / each).is_dir() for each in entries)


def _names(folder: Path, entries: list[str]) -> set[str]:
    """Return the entries as formats name them: folders end with "/"."""
    return {f"{each}/" if (folder / each).is_dir() else each for each in entries}


def content(folder: Path) -> list[Path]:
    """Return the entries of a folder, without hidden ones and those of its file system. Raises OSError."""
    return [each for each in folder.iterdir() if is_content(each.name)]


def is_content(name: str) -> bool:
    """Return whether an entry of a mount may be a model or a file of one."""
    return not name.startswith(".") and name != "lost+found"


def _only_file(
    folder: Path, entries: list[str], name: str, formats: Formats, trust: bool
) -> ModelFile:
    """Return the one file or folder of a format among the entries, whatever its name."""
    found: list[ModelFile] = []
    refused: list[CoreError] = []
    suffixes = {Path(each.file).suffix for each in formats}
    for each in entries:
        if Path(each).suffix not in suffixes:
            continue
        try:
            found.append(model_file(folder / each, formats, name=name, trust=trust))
        except CoreError as error:
            refused.append(error)
    if len(found) == 1:
        return found[0]
    if not found and len(refused) == 1:
        raise refused[0]
    shown = ", ".join(entries[:_MOST_SHOWN]) or "nothing"
    expected = (
        "name one of them model.SUFFIX"
        if found
        else f"no installed backend reads them{formats.advice(entries)}"
    )
    raise invalid(
        f"model '{name}': found {shown} in '{folder}'; {expected}. Expected are a model repository, the "
        "folder of a model with versions, or the file of a model, as `core formats` lists them"
    )
