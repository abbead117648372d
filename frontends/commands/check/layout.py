"""The error for a repository that holds no model."""

from __future__ import annotations

from pathlib import Path

from core import plugins
from core.errors import CoreError
from frontends.commands.model_file import model_file


def without_models(repository: Path) -> str:
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
