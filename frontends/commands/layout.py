"""Layout: what is wrong with the folders of a model, and the command that mends it.

folder of a model ─► [mended] ─► "'iris' has model.onnx but no folder of a version; try: mkdir …"
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from core.config.formats import Formats
from core.repository import version_number


def mended(folder: Path, formats: Formats) -> str:
    """Return what is wrong with the folder of a model, with a command; "" if its layout is not the reason."""
    versions = [each for each in _folders(folder) if version_number(each.name) is not None]
    if not versions:
        return _without_version(folder, formats)
    newest = max(versions, key=lambda each: int(each.name))
    if any(newest.joinpath(each.file).exists() for each in formats):
        return ""
    if (folder / "config.pbtxt").exists():  # it may name another file
        return ""
    for file in _models(newest, formats):
        target = newest / _names(file, formats)[0]
        return (
            f"version {newest.name} has '{file.name}', expected {_alternatives(_names(file, formats))}; "
            f"try: {_command('mv', file, target)}"
        )
    return ""


def loose(repository: Path, formats: Formats) -> str:
    """Return what is wrong with a repository without models, with a command."""
    files = _models(repository, formats)
    if not files:
        found = ", ".join(sorted(each.name for each in repository.iterdir())) or "nothing"
        return f"it holds no folder of a model (found {found}); try: core init {repository} FILE"
    return (
        f"'{files[0].name}' is a file, and each model has a folder; "
        f"try: {_command('core', 'init', repository, files[0])}"
    )


def _without_version(folder: Path, formats: Formats) -> str:
    for each in _folders(folder):
        if (number := re.fullmatch(r"[vV]?0*([1-9][0-9]*)", each.name)) is not None:
            return (
                f"'{each.name}' is no version, expected a number without v and zeros before it; "
                f"try: {_command('mv', each, folder / number[1])}"
            )
    files = _models(folder, formats)
    if not files:
        found = ", ".join(sorted(each.name for each in folder.iterdir())) or "nothing"
        return f"no folder of a version, such as 1 (found {found}); try: {_command('mkdir', folder / '1')}"
    file = files[0]
    target = folder / "1" / _names(file, formats)[0]
    return (
        f"'{file.name}' but no folder of a version; "
        f"try: {_command('mkdir', target.parent)} && {_command('mv', file, target)}"
    )


def _folders(folder: Path) -> list[Path]:
    return sorted(each for each in folder.iterdir() if each.is_dir())


def _models(folder: Path, formats: Formats) -> list[Path]:
    """Return the files in a folder that are models, the likeliest first.

    A name or suffix of Triton's formats is enough. Others, such as .txt, may be anything: such a file counts
    if it has the name of a format or is the only one.
    """
    there = [each for each in sorted(folder.iterdir()) if each.is_file()]
    files = [each for each in there if each.name != "config.pbtxt"]
    triton = [each for each in formats if each.order < math.inf]
    suffixes = [Path(each.file).suffix for each in triton]
    exact = [each.file for each in formats]
    found = [
        each
        for each in files
        if _names(each, formats)
        and (each.name in exact or each.suffix in suffixes or len(files) == 1)
    ]
    return sorted(found, key=lambda each: each.name not in exact)


def _names(file: Path, formats: Formats) -> list[str]:
    """Return the names that formats have for a file of that suffix; its own name first."""
    names = [each.file for each in formats]
    if file.name in names:
        return [file.name]
    return [
        name for name in names if Path(name).stem == "model" and Path(name).suffix == file.suffix
    ]


def _alternatives(names: Sequence[str]) -> str:
    return " or ".join(f"'{name}'" for name in dict.fromkeys(names))


def _command(*words: object) -> str:
    return shlex.join(map(str, words))
