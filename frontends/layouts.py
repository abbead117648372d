"""Folders that are no models or repositories: what lies there, and the command that mends it.

    a model's folder in which core finds no version or no known file ─► [core_explain_layout] ─► the error
    --model-repository ─► [core_run_server] ─► a warning for a repository without models

The entry points of core.formats say which file belongs to which backend.
"""

from __future__ import annotations

import logging
import os
import re
import shlex
from collections.abc import Collection, Iterable, Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

from core import plugins
from core.hookspecs import hookimpl

if TYPE_CHECKING:
    from core.options import Options

logger = logging.getLogger("core")

_FREQUENT = (".json", ".txt")
"""Endings of many files that are no models: such a file counts only under the exact name of a format."""

_EXPECTED = "expected is <repository>/<model>/<version>/<file>"


class _ModelFile(NamedTuple):
    """A file or folder that is probably a model.

    name       its name
    expected   name under which its backend looks for it
    """

    name: str
    expected: str


@hookimpl(tryfirst=True)  # another plugin may serve, and end the calls
def core_run_server(options: Options) -> None:
    """Log a warning for each repository that holds no folder, before the server starts. Return None.

    Hidden folders do not count. URLs other than file:// and folders that cannot be read are left out.
    """
    for location in sorted(set(options.model_repository)):
        path = location.removeprefix("file://")
        if "://" in path:  # its plugin refuses an empty one
            continue
        try:
            with os.scandir(path) as entries:
                is_folder = {each.name: each.is_dir() for each in entries if each.name[0] != "."}
        except OSError:  # core reports it
            continue
        if not any(is_folder.values()):
            hint = _of_empty(path, list(is_folder))
            logger.warning("model repository '%s' holds no models; %s", location, hint)


@hookimpl(trylast=True)
def core_explain_layout(name: str, folder: str, listing: Mapping[str, str]) -> str | None:
    """Return what is wrong with the layout of a model's folder, and how to mend it; None if unknown.

    listing   the keys are paths below the folder, those of folders with "/" at the end
    """
    top = _names_in("", listing)
    folders = [each for each in top if each.endswith("/")]
    versions = [each for each in folders if _is_version(each[:-1])]
    if versions:
        return _in_version(name, folder, versions[0], _names_in(versions[0], listing))
    if (found := _model_file(top)) is not None:
        return _without_version(name, folder, found, top)
    for each in folders:
        inside = _names_in(each, listing)
        if any(_is_version(part[:-1]) for part in inside if part.endswith("/")):
            return f"'{name}' is no model: it holds the model '{each[:-1]}': {_use(folder)}"
        if (found := _model_file(inside)) is not None:
            return _in_misnamed_version(name, folder, each, found, inside)
    if "config.pbtxt" in top and "://" not in folder:
        return (
            f"'{name}' has config.pbtxt but no version folder, which holds the model's file, and is empty "
            f"for an ensemble: `mkdir {_quoted(PurePath(folder) / '1')}`"
        )
    return None


# repositories ---------------------------------------------------------------------------


def _of_empty(folder: str, names: Collection[str]) -> str:
    """Return what a repository without folders holds, and the command or flag that mends it.

    names   of its files; may be empty
    """
    path = PurePath(os.path.abspath(folder))
    if (found := _model_file(names)) is None:
        return f"{_EXPECTED}: `core init {_quoted(path)} FILE` makes that of a model's file"
    if _is_version(path.name):
        return f"it is a version of the model '{path.parent.name}': {_use(path.parent.parent)}"
    model = PurePath(found.name).stem
    if model == PurePath(found.expected).stem:
        model = "my_model"
    version = path / model / "1"
    commands = [f"mkdir -p {_quoted(version)}", *_moves(path, found, names, version)]
    return f"it has {found.name}, {_EXPECTED}: `{' && '.join(commands)}`"


# models ---------------------------------------------------------------------------------


def _without_version(name: str, folder: str, found: _ModelFile, names: Collection[str]) -> str:
    """Return the text for a model's file directly in the model's folder, with the commands that move it.

    If `name` is a version number, the folder is probably a version: return which --model-repository to use.
    """
    if _is_version(name):
        above = folder.rpartition("/")[0]
        text = f"'{_shown(above)}' is the folder of a model, not a repository"
        return f"{text}: {_use(above.rpartition('/')[0])}"
    text = f"'{name}' has {found.name} but no version folder"
    if "://" in folder:
        return f"{text}: move it to {folder}/1/{found.expected}"
    path = PurePath(folder)
    commands = [f"mkdir {_quoted(path / '1')}", *_moves(path, found, names, path / "1")]
    return f"{text}: `{' && '.join(commands)}`"


def _in_misnamed_version(
    name: str, folder: str, version: str, found: _ModelFile, names: Collection[str]
) -> str:
    """Return the text for a version folder whose name is no number, with the commands that rename it."""
    digits = re.search(r"[1-9][0-9]*", version)
    number = digits[0] if digits else "1"
    text = f"'{name}' has {version}{found.name}, but the name of a version folder is a number"
    if "://" in folder:
        return f"{text}: move it to {folder}/{number}/{found.expected}"
    path = PurePath(folder)
    commands = [f"mv {_quoted(path / version)} {_quoted(path / number)}"]
    if found.name != found.expected:
        commands += _moves(path / number, found, names, path / number)
    return f"{text}: `{' && '.join(commands)}`"


def _in_version(name: str, folder: str, version: str, names: Collection[str]) -> str | None:
    """Return the text for a file in a version folder whose name is wrong, with the commands that rename it.

    Return None if no file is probably a model, or if its name is the one that its backend looks for.
    """
    found = _model_file(names)
    if found is None or found.name == found.expected:
        return None
    text = f"'{name}' has {version}{found.name}, its backend looks for {version}{found.expected}"
    if "://" in folder:
        return f"{text}: move it to {folder}/{version}{found.expected}"
    path = PurePath(folder) / version
    return f"{text}: `{' && '.join(_moves(path, found, names, path))}`"


def _model_file(names: Iterable[str]) -> _ModelFile | None:
    """Return the one of `names` that is probably a model; None if there is none.

    It has the name of a format, else the ending of one, such as .onnx. Names of folders end with "/".
    """
    there = sorted(names)
    formats = list(plugins.formats())
    for each in formats:
        if each.is_in(there):
            return _ModelFile(each.file, each.file)
    for each in formats:
        ending = PurePath(each.file).suffix
        if ending and ending not in _FREQUENT and each.may_be_file:
            for name in there:
                if name.endswith(ending) and name != ending:
                    return _ModelFile(name, each.file)
    return None


# commands -------------------------------------------------------------------------------


def _moves(
    path: PurePath, found: _ModelFile, names: Collection[str], target: PurePath
) -> list[str]:
    """Return the shell commands that move a model's file from `path` to `target`, under its expected name.

    names   what lies in `path`; files that belong to the model move, too
    Weights with the stem of the model's file, such as model.bin beside model.xml, get its new stem. A file
    whose name begins with the whole name of the model's file, such as model.onnx.data, keeps its name: the
    model's file probably contains that name.
    """
    stem, expected = PurePath(found.name).stem, PurePath(found.expected).stem
    new = {found.name: found.expected}
    for each in sorted(names):
        if each.startswith((f"{found.name}.", f"{found.name}_")):
            new[each] = each
        elif each == f"{stem}.bin":
            new[each] = f"{expected}.bin"
    same = [_quoted(path / each) for each, name in new.items() if each == name and path != target]
    commands = [f"mv {' '.join(same)} {_quoted(target)}/"] if same else []
    renamed = [(path / each, target / name) for each, name in new.items() if each != name]
    return commands + [f"mv {_quoted(old)} {_quoted(new)}" for old, new in renamed]


def _use(repository: PurePath | str) -> str:
    return f"`--model-repository={_quoted(repository)}`"


def _names_in(folder: str, listing: Mapping[str, str]) -> list[str]:
    """Return the names in a folder of a listing, sorted; folders end with "/".

    folder   "" for the top, else with a "/" at the end
    """
    inside = (path.removeprefix(folder) for path in listing if path.startswith(folder))
    return sorted(each for each in inside if each and "/" not in each[:-1])


def _is_version(folder: str) -> bool:
    return folder.isascii() and folder.isdigit() and not folder.startswith("0")


def _quoted(path: PurePath | str) -> str:
    return shlex.quote(_shown(path))


def _shown(path: PurePath | str) -> str:
    """Return a path as a person writes it: relative if it lies in the working directory; a URL unchanged."""
    text = str(path)
    relative = os.path.relpath(text) if os.path.isabs(text) else text
    return text if relative.startswith("..") else relative
