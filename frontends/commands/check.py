"""`core check PATH…`: loads each model once, without a server, and prints whether it loads, or why not.

PATH… ─► repositories ─► offline_model of each model and version ─► one line for each model
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from core import plugins
from core.errors import CoreError, invalid
from core.repository import FolderRepository
from frontends.commands.model_file import model_file

if TYPE_CHECKING:
    from core.options import Options

summary = "load the models of a repository without a server, and print what is wrong"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", help="repository, folder of a model, or file"
    )
    parser.add_argument("--trust", action="store_true", help="as for core serve")
    parser.add_argument("--backend-directory", default="", help="as for core serve")
    parser.add_argument("--repoagent-directory", default="", help="as for core serve")
    parser.add_argument("--model-config-name", default="", help="as for core serve")
    parser.add_argument(
        "--disable-auto-complete-config", action="store_true", help="as for core serve"
    )
    parser.epilog = "The exit status is 1 if a model fails, or if there is none."


def run(namespace: argparse.Namespace) -> int:
    """Print a line for each model and each repository without models, then the counts; return 0 or 1.

    Return 1 if a model does not load, if a repository holds no models, or if there are no models at all.
    Raises CoreError for a PATH that `served` refuses, and for a repository that is no readable folder.
    """
    # Imported here: the list of commands does not need them.
    from core.options import Options
    from frontends.commands.paths import served

    options = Options.defaults(
        backend_directory=namespace.backend_directory,
        repoagent_directory=namespace.repoagent_directory,
        model_config_name=namespace.model_config_name,
        disable_auto_complete_config=namespace.disable_auto_complete_config,
    )
    plugins.load_hooks()
    with served(namespace.paths, trust=namespace.trust) as found:
        models = _models(found.repositories)
        width = max((len(name) for name, _ in models), default=0)
        failed = 0
        for name, folders in models:
            reason, detail = _checked(folders, options)
            failed += bool(reason)
            state = f"failed  {found.shown(reason)}" if reason else f"ok      {detail}"
            print(f"{name:{width}}  {state}", flush=True)
        empty = [found.shown(each) for each in found.repositories if not _names(each)]
    for repository in empty:
        print(f"{repository}  failed  {_without_models(Path(repository))}")
    count = "1 model" if len(models) == 1 else f"{len(models)} models"
    print(f"{count}, {failed} failed")
    return 1 if failed or empty or not models else 0


def _models(repositories: Sequence[str]) -> list[tuple[str, list[Path]]]:
    """Return (name, folders) of each model, sorted by name. Each of several repositories may have one."""
    found: dict[str, list[Path]] = {}
    for repository in repositories:
        for name in _names(repository):
            found.setdefault(name, []).append(Path(repository, name))
    return sorted(found.items())


def _names(repository: str) -> set[str]:
    """Return the names of a repository's models.

    Raises CoreError if the repository is a URL, or if its folder cannot be listed.
    """
    if "://" in repository:
        raise invalid(f"'{repository}' is no folder: copy it to this machine to check it")
    folder = FolderRepository(repository)
    folder.check()
    return folder.names()


def _checked(folders: Sequence[Path], options: Options) -> tuple[str, str]:
    """Load and release each version that the model's version policy selects; return (reason, summary).

    reason    why the first failing version fails, on one line; "" if all versions load. Several folders are
              such a reason, too: none of them is loaded
    summary   backend, versions and seconds; "" if there is a reason
    """
    from frontends.commands.offline import offline_model, wanted_versions

    folder = folders[0]
    if len(folders) > 1:
        places = " and ".join(f"'{each}'" for each in folders)
        return f"several models have this name: {places}; rename one", ""
    began = time.monotonic()
    try:
        model = offline_model(folder, options, tried=True)
        versions = wanted_versions(model)
        for number in versions:
            if number != model.version.version:
                offline_model(folder, options, number, tried=True)
    except Exception as error:  # the code of a model may raise anything
        return _line(error), ""
    numbers = ", ".join(map(str, versions))
    noun = "version" if len(versions) == 1 else "versions"
    kind = model.config.backend or "ensemble"
    return "", f"{kind}, {noun} {numbers}, {time.monotonic() - began:.1f} s"


def _without_models(repository: Path) -> str:
    """Return the error text for a repository without models: the names in it, and a `core init` command.

    The command names the first file that a backend reads, or says FILE if there is none.
    """
    files = sorted(each for each in repository.iterdir() if each.name[0] != ".")
    models = [each for each in files if each.is_file() and _is_model_file(each)]
    found = ", ".join(each.name for each in files) or "nothing"
    command = f"core init {repository} {models[0] if models else 'FILE'}"
    return f"it holds no folder of a model (found {found}); try: {command}"


def _is_model_file(path: Path) -> bool:
    try:
        model_file(path, plugins.formats(), trust=True)
    except CoreError:
        return False
    return True


def _line(error: Exception) -> str:
    """Return the text of an error on one line; it begins with the type, unless the error is a CoreError."""
    text = error.message if isinstance(error, CoreError) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())
