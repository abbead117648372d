"""Backends by the name that configurations say: installed ones, and folders with a file that we know."""

from __future__ import annotations

from pathlib import Path

from core.backend import Backend
from core.errors import internal, invalid
from core.plugins.calls import register
from core.plugins.installed import BACKENDS, Plugin, available_backends, hidden
from core.plugins.missing import DISTRIBUTIONS, hint

# What a folder of --backend-directory may hold, and the backend that makes one of it.
_RUNTIMES = {"model.py": "python"}

# The backend that has processes for the models of others.
_PROCESSES = "python"

_imported: dict[str, tuple[Plugin, Backend]] = {}  # written by `backend`


def backend(name: str, directory: str = "") -> Backend:
    """The backend of that name, imported on first use. Any thread; one call at a time.

    directory   where folders with backends are, "" for none; what is installed goes first
    Raises CoreError(INVALID) when there is none, what Plugin.load raises, and CoreError(INTERNAL)
    when the object is no Backend.
    """
    installed = available_backends()
    if name not in installed:
        if (found := _of_folder(name, directory)) is not None:
            return found
        names = ", ".join(sorted(installed)) or "none"
        if name in hidden():
            raise invalid(f"no backend named '{name}' (CORE_BLOCK hides it) (installed: {names})")
        raise invalid(f"no backend named '{name}' (installed: {names}){hint(name, installed)}")
    found = installed[name].load()
    if not isinstance(found, Backend):
        raise internal(
            f"backend '{name}' of {installed[name].distribution}: "
            f"'{installed[name].entries[0].value}' is a {type(found).__name__}, not a core.Backend"
        )
    found.name = found.name or name
    register(found, f"backend {name}")
    _imported[name] = installed[name], found
    return found


def is_there(name: str, directory: str = "") -> bool:
    """Whether `backend` finds one of that name; nothing is imported. Any thread."""
    return name in available_backends() or _runtime(name, directory) is not None


def _of_folder(name: str, directory: str) -> Backend | None:
    """The backend that <directory>/<name> is, None if there is no such folder with a file that we know.

    A new one each time: servers of one process may have other folders.
    """
    if (file := _runtime(name, directory)) is None:
        return None
    found = backend(_RUNTIMES[file]).derive(name, Path(directory, name), file)
    _imported[name] = Plugin(name, BACKENDS, ()), found
    return found


def _runtime(name: str, directory: str) -> str | None:
    """The file that makes <directory>/<name> a backend."""
    folder = Path(directory, name)
    if not directory or name in hidden() or name != folder.name or name == "..":
        return None
    return next((file for file in _RUNTIMES if (folder / file).is_file()), None)


def apart(found: Backend) -> Backend:
    """What runs the models of a backend in processes of their own. Any thread.

    Raises CoreError(INVALID) when nothing is installed that can.
    """
    if _PROCESSES not in available_backends():
        raise invalid(
            f"EXECUTION_MODE 'process' of a model of backend '{found.name}' needs backend "
            f"'{_PROCESSES}', which has the processes; it is in the distribution "
            f"{DISTRIBUTIONS[_PROCESSES]}"
        )
    return backend(_PROCESSES).keep_apart(found)


def imported() -> dict[str, tuple[Plugin, Backend]]:
    """The backends that models have asked for, by the name that they used."""
    return dict(_imported)
