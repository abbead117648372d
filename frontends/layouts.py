"""Hints for folders that are no models: what lies there, and the command that mends it.

    core.repository ─► [core_explain_layout] ─► the end of an error or a warning

Which file belongs to which backend is known from the entry points of core.formats.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from core import plugins
from core.hookspecs import hookimpl

_FREQUENT = (".json", ".txt")
"""Endings of files that need not be models: such a file counts only with the exact name of a format."""

_EXAMPLE = "a repository holds <model>/<version>/<file>"


class _ModelFile(NamedTuple):
    """A file or folder that is probably a model.

    name       its name
    expected   name under which its backend looks for it
    """

    name: str
    expected: str


@hookimpl(trylast=True)
def core_explain_layout(name: str, folder: str, listing: Mapping[str, str]) -> str | None:
    """Return what is wrong with the layout of a folder, and the command that mends it; None if unknown."""
    if name:
        return _of_model(name, folder, listing)
    return None if "://" in folder else _of_repository(folder)


def _of_repository(folder: str) -> str:
    """Explain a repository without models: only files lie in it."""
    try:
        names = os.listdir(folder)
    except OSError:
        return _EXAMPLE
    if (found := _model_file(names)) is None:
        return f"{_EXAMPLE}; `core init {_quoted(folder)} FILE` makes that of a model's file"
    path = Path(os.path.abspath(folder))
    if _is_version(path.name):
        return (
            f"it is a version of the model '{path.parent.name}': "
            f"`--model-repository={_quoted(path.parent.parent)}`"
        )
    model = PurePosixPath(found.name).stem
    if model == PurePosixPath(found.expected).stem:
        model = "my_model"
    moves = _moves(path, found, names, path / model / "1")
    return (
        f"it has {found.name}, but {_EXAMPLE}: `mkdir -p {_quoted(path / model / '1')} && {moves}`"
    )


def _of_model(name: str, folder: str, listing: Mapping[str, str]) -> str | None:
    top = _names_in("", listing)
    folders = [each for each in top if each.endswith("/")]
    versions = [each for each in folders if _is_version(each[:-1])]
    if versions:
        return _of_version(name, folder, versions[0], listing)
    if (found := _model_file(top)) is not None:
        return _without_version(name, folder, found, top)
    for each in folders:
        inside = _names_in(each, listing)
        if any(_is_version(part[:-1]) for part in inside if part.endswith("/")):
            return (
                f"'{name}' is a repository, or a folder of several: it has the model '{each[:-1]}': "
                f"`--model-repository={_quoted(folder)}`"
            )
        if (found := _model_file(inside)) is not None:
            return _misnamed_version(name, folder, each, found, inside)
    return None


def _without_version(name: str, folder: str, found: _ModelFile, names: Collection[str]) -> str:
    """Explain a model's file that lies directly in the model's folder."""
    path = PurePosixPath(folder)
    if _is_version(name):
        return (
            f"'{_shown(path.parent)}' is the folder of a model, not a repository: "
            f"`--model-repository={_quoted(path.parent.parent)}`"
        )
    text = f"'{name}' has {found.name} but no version folder"
    if "://" in folder:
        return f"{text}: move it to {folder}/1/{found.expected}"
    moves = _moves(path, found, names, path / "1")
    return f"{text}: `mkdir {_quoted(path / '1')} && {moves}`"


def _misnamed_version(
    name: str, folder: str, version: str, found: _ModelFile, names: Collection[str]
) -> str:
    """Explain a version folder whose name is no number."""
    digits = re.search(r"[1-9][0-9]*", version)
    number = digits[0] if digits else "1"
    text = f"'{name}' has {version}{found.name}, but a version folder has a number as its name"
    if "://" in folder:
        return f"{text}: move it to {folder}/{number}/{found.expected}"
    path = PurePosixPath(folder)
    commands = [f"mv {_quoted(path / version)} {_quoted(path / number)}"]
    if found.name != found.expected:
        commands.append(_moves(path / number, found, names, path / number))
    return f"{text}: `{' && '.join(commands)}`"


def _of_version(name: str, folder: str, version: str, listing: Mapping[str, str]) -> str | None:
    """Explain a version folder whose file has a name that no backend looks for."""
    names = _names_in(version, listing)
    found = _model_file(names)
    if found is None or found.name == found.expected:
        return None
    text = f"'{name}' has {version}{found.name}, and its backend looks for {found.expected}"
    if "://" in folder:
        return f"{text}: move it to {folder}/{version}{found.expected}"
    path = PurePosixPath(folder) / version
    return f"{text}: `{_moves(path, found, names, path)}`"


def _names_in(folder: str, listing: Mapping[str, str]) -> list[str]:
    """Return the names in a folder of a listing, sorted; folders end with "/".

    folder   "" for the top, else with a "/" at the end
    """
    inside = (path.removeprefix(folder) for path in listing if path.startswith(folder))
    return sorted(each for each in inside if each and "/" not in each[:-1])


def _model_file(names: Iterable[str]) -> _ModelFile | None:
    """Return the file among `names` that is probably the model: by its name, else by its ending."""
    there = sorted(names)
    formats = list(plugins.formats())
    for each in formats:
        if each.is_in(there):
            return _ModelFile(each.file, each.file)
    for each in formats:
        ending = PurePosixPath(each.file).suffix
        if ending and ending not in _FREQUENT and each.may_be_file:
            for name in there:
                if name.endswith(ending) and name != ending:
                    return _ModelFile(name, each.file)
    return None


def _moves(
    path: PurePosixPath, found: _ModelFile, names: Collection[str], target: PurePosixPath
) -> str:
    """Return the commands that move a model's file, and the files that belong to it, to a version folder.

    A file of the same stem, such as model.bin beside model.xml, keeps that stem. A file whose name begins
    with the whole name of the model's file is named in it, and keeps its name.
    """
    stem, expected = PurePosixPath(found.name).stem, PurePosixPath(found.expected).stem
    new = {found.name: found.expected}
    for each in sorted(names):
        beside = PurePosixPath(each)
        if each.startswith((f"{found.name}.", f"{found.name}_")):
            new[each] = each
        elif beside.stem == stem and each != found.name and beside.suffix == ".bin":
            new[each] = f"{expected}{beside.suffix}"
    same = [path / each for each, name in new.items() if each == name and path != target]
    commands = [f"mv {' '.join(map(_quoted, same))} {_quoted(target)}/"] if same else []
    commands += [
        f"mv {_quoted(path / each)} {_quoted(target / name)}"
        for each, name in new.items()
        if each != name
    ]
    return " && ".join(commands)


def _is_version(folder: str) -> bool:
    return folder.isascii() and folder.isdigit() and not folder.startswith("0")


def _shown(path: PurePosixPath | str) -> str:
    """Return a path as one would write it here: relative if it lies below the working directory."""
    text = str(path)
    if not os.path.isabs(text):
        return text
    relative = os.path.relpath(text)
    return text if relative.startswith("..") else relative


def _quoted(path: PurePosixPath | str) -> str:
    return shlex.quote(_shown(path))
