"""PATH of a command line: a repository, the folder of a model, or the file of a model.

PATH… ─► [served] ─► repositories.  A temporary repository has links to files and folders of models.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from core import plugins
from core.errors import invalid, not_found
from core.repository import PrivateDirectory, version_number
from frontends.commands.model_file import ModelFile, make_model, model_file


@dataclass(frozen=True)
class Served:
    """What the paths of a command line name.

    repositories   locations; the last is a temporary repository if a path names a file or folder of a model
    files          name of a model → the file that it is made of
    links          path in the temporary repository → the user's path that stands for it in messages
    """

    repositories: list[str]
    files: dict[str, Path] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)

    def shown(self, text: str) -> str:
        """Return the text with each path in the temporary repository replaced by the user's path for it."""
        return as_written(text, self.links)


def as_written(text: str, links: Mapping[str, str]) -> str:
    """Return the text with the paths that the user wrote in place of the links to them.

    links   path in the temporary repository → the path that the user wrote
    """
    for link in sorted(links, key=len, reverse=True):  # one link may begin another
        text = text.replace(link, links[link])
    return text


@contextmanager
def served(paths: Sequence[str], *, trust: bool = False) -> Iterator[Served]:
    """Yield a Served, whose repositories hold the models of all paths.

    trust   whether the user trusts the code in the files
    Files and folders of models get links in a temporary repository, so that a server that polls follows their
    changes; that repository is removed at the end. Raises CoreError for a missing path, for a file that
    `model_file` refuses, if two models of the files and folders get the same name, and without a place for
    links.
    """
    repositories: list[str] = []
    models: dict[str, Path | ModelFile] = {}
    for text in paths:
        found = _what(text, trust)
        if isinstance(found, str):
            repositories.append(found)
            continue
        name = found.name if isinstance(found, ModelFile) else Path(os.path.abspath(found)).name
        if name in models:
            raise invalid(
                f"two models are named '{name}': '{_path(models[name])}' and '{text}'; rename one"
            )
        models[name] = found
    if not models:
        yield Served(repositories)
        return
    try:
        temporary = PrivateDirectory()
    except OSError as error:
        raise invalid(
            f"no folder for links to '{text}' can be made: {error}; TMPDIR names another place"
        ) from error
    try:
        files: dict[str, Path] = {}
        links: dict[str, str] = {}
        for name, model in models.items():
            folder = temporary.path / name
            if isinstance(model, ModelFile):
                made = make_model(model, folder, link=True)
                files[name] = model.path
                links |= {str(made): str(model.path), str(folder): str(model.path)}
            else:
                folder.symlink_to(model.absolute(), target_is_directory=True)
                links[str(folder)] = str(model)
        yield Served([*repositories, str(temporary.path)], files, links)
    finally:
        temporary.remove()


def _path(model: Path | ModelFile) -> Path:
    return model.path if isinstance(model, ModelFile) else model


def _what(text: str, trust: bool) -> str | Path | ModelFile:
    """Return what a PATH names: str for a repository, Path for the folder of a model, ModelFile for a file.

    A URL is a repository, and so is a folder that is no model, unless it has the suffix of a format that may
    be a folder: then it is a ModelFile. Raises CoreError if there is nothing at the path, or if `model_file`
    refuses the file.
    """
    path = Path(text)
    if "://" in text:
        return text
    if not path.exists():
        raise not_found(f"there is no file or folder '{text}'{_nearest(path)}")
    if is_model(path):
        return path
    formats = plugins.formats()
    suffixes = {Path(each.file).suffix for each in formats if each.may_be_folder}
    if path.is_dir() and path.suffix not in suffixes:
        return text
    return model_file(path, formats, trust=trust)


def is_model(folder: Path) -> bool:
    """Return whether a path is the folder of one model: it has a configuration file or a version folder.

    A folder in it that has a number as its name, and is itself the folder of a model, is no version folder.
    """
    if not folder.is_dir():
        return False
    if any((folder / name).is_file() for name in ("config.pbtxt", "model-settings.json")):
        return True
    versions = (each for each in folder.iterdir() if version_number(each.name) is not None)
    # A repository may hold a model that is named 1.
    return any(each.is_dir() and not is_model(each) for each in versions)


def _nearest(path: Path) -> str:
    folder = path.parent
    names = [each.name for each in folder.iterdir()] if folder.is_dir() else []
    near = difflib.get_close_matches(path.name, names, 1)
    return f"; did you mean '{folder / near[0]}'?" if near else ""
