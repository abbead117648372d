"""Finds backends by their name in configurations: installed, or folders that a process host runs."""

from __future__ import annotations

from pathlib import Path

from core.backend import Backend
from core.errors import internal, invalid
from core.plugins.calls import register
from core.plugins.installed import BACKENDS, PROCESS_HOSTS, Plugin, available_backends, hidden
from core.plugins.installed import installed as installed_of
from core.plugins.missing import PROCESS_HOST, distributions, hint
from core.plugins.process_host import PROCESS, HostedBackend, ProcessHost

_imported: dict[str, tuple[Plugin, Backend]] = {}  # written by `backend`


def backend(name: str, directory: str = "") -> Backend:
    """Return the installed backend of that name, or a new one of its folder. Any thread, no two at once.

    directory   parent of the folders with backends, "" for none; installed backends take precedence
    Its hooks are active from then on. Raises CoreError: INVALID if there is none, INTERNAL if the object is
    no Backend; and the errors of Plugin.load and `check_hooks`.
    """
    installed = available_backends()
    if name not in installed:
        if (file := _folder_file(name, directory)) is not None:
            return _of_folder(name, file)
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
    """Return whether `backend` finds that name, without an import. Any thread."""
    return name in available_backends() or _folder_file(name, directory) is not None


def _of_folder(name: str, file: Path) -> HostedBackend:
    """Return a new backend, made by a process host: servers of one process may have different folders."""
    found = _host(file.name, "from_folder").from_folder(name, file)
    _imported[name] = Plugin(name, BACKENDS, ()), found
    return found


def _folder_file(name: str, directory: str) -> Path | None:
    """Return the first file by which a process host can run <directory>/<name> as a backend, or None."""
    folder = Path(directory, name)
    if not directory or name in hidden() or name != folder.name or name == "..":
        return None
    files = (folder / each for each in installed_of(PROCESS_HOSTS) if each != PROCESS)
    return next((file for file in files if file.is_file()), None)


def can_isolate() -> bool:
    """Return whether `isolate` finds a process host, without an import. Any thread."""
    return PROCESS in installed_of(PROCESS_HOSTS)


def isolate(found: Backend) -> HostedBackend:
    """Return the backend that runs the models of `found` in processes of their own. Any thread.

    Raises CoreError: INVALID without a process host, INTERNAL if it has no `isolate`; and as `backend`.
    """
    if not can_isolate():
        ours = distributions().get(PROCESS_HOST)
        raise invalid(
            f"EXECUTION_MODE 'process' of a model of backend '{found.name}' needs a process host, and "
            "none is installed" + (f"; one is in the distribution {ours}" if ours else "")
        )
    return _host(PROCESS, "isolate").isolate(found)


def _host(name: str, method: str) -> ProcessHost:
    plugin = installed_of(PROCESS_HOSTS)[name]
    found: ProcessHost = plugin.load()
    if not callable(getattr(found, method, None)):
        raise internal(
            f"process host '{name}' of {plugin.distribution}: '{plugin.entries[0].value}' has no method "
            f"{method}"
        )
    register(found, f"process host {plugin.entries[0].value}")
    return found


def imported() -> dict[str, tuple[Plugin, Backend]]:
    """Return name → (plugin, backend) for each name that `backend` has found so far."""
    return dict(_imported)
