"""What other distributions bring: backends, frontends and hooks, found by entry point.

At the start only names are read; a module is imported when somebody asks for what it brings. A
broken plugin fails those who ask for it, and nobody else.

CORE_BLOCK=name,… hides plugins by name, whatever their group.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import pluggy

from core import hookspecs
from core.backend import Backend
from core.errors import internal, invalid

logger = logging.getLogger("core")

BACKENDS = "core.backends"
FRONTENDS = "core.frontends"
HOOKS = "core.plugins"

_KINDS = {BACKENDS: "backend", FRONTENDS: "frontend", HOOKS: "plugin"}
# Words of configurations whose distribution has another name.
_DISTRIBUTIONS = {"onnxruntime": "backend-onnx"}

# What a folder of --backend-directory may hold, and the backend that makes one of it.
_RUNTIMES = {"model.py": "python"}

_imported: dict[str, tuple[Plugin, Backend]] = {}  # written by `backend`


@dataclass(frozen=True)
class Plugin:
    """One name that a distribution brings; its module may not have been imported.

    name      as configurations say it
    group     of entry points: BACKENDS, FRONTENDS or HOOKS
    entries   usually one; several when distributions quarrel about the name; none of a folder
    """

    name: str
    group: str
    entries: tuple[metadata.EntryPoint, ...]

    @property
    def distribution(self) -> str:
        """Name and version of the distribution, or of those that quarrel."""
        return " and ".join(map(_distribution, self.entries))

    def load(self) -> Any:
        """The object behind the name; imports its module the first time.

        Raises CoreError(INVALID) when two distributions bring the name, CoreError(INTERNAL) when the
        import fails.
        """
        kind = _KINDS[self.group]
        if len(self.entries) > 1:
            raise invalid(
                f"{kind} '{self.name}' comes from two distributions: {self.distribution}; "
                "uninstall one of them"
            )
        try:
            return self.entries[0].load()
        except Exception as error:
            raise internal(
                f"{kind} '{self.name}' of {self.distribution} cannot be imported: "
                f"{type(error).__name__}: {error}"
            ) from error


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
        hint = _DISTRIBUTIONS.get(name, f"backend-{name}")
        blocked = " (CORE_BLOCK hides it)" if name in _blocked() else ""
        raise invalid(
            f"no backend named '{name}'{blocked} (installed: {names}); try: pip install {hint}"
        )
    found = installed[name].load()
    if not isinstance(found, Backend):
        raise internal(
            f"backend '{name}' of {installed[name].distribution}: "
            f"'{installed[name].entries[0].value}' is a {type(found).__name__}, not a core.Backend"
        )
    found.name = found.name or name
    if not hooks().is_registered(found):
        hooks().register(found, name=f"backend {name}")
    _imported[name] = installed[name], found
    return found


def _of_folder(name: str, directory: str) -> Backend | None:
    """The backend that <directory>/<name> is, None if there is no such folder with a file that we know.

    A new one each time: servers of one process may have other folders.
    """
    folder = Path(directory, name)
    if not directory or name in _blocked() or name != folder.name or name == "..":
        return None
    for file, base in _RUNTIMES.items():
        if (folder / file).is_file():
            found = backend(base).derive(name, folder, file)
            _imported[name] = Plugin(name, BACKENDS, ()), found
            return found
    return None


def imported() -> dict[str, tuple[Plugin, Backend]]:
    """The backends that models have asked for, by the name that they used."""
    return dict(_imported)


def aliases(name: str) -> list[str]:
    """All names of one backend, such as onnx and onnxruntime; just `name` if it is not installed."""
    installed = available_backends()
    if name not in installed:
        return [name]
    value = installed[name].entries[0].value
    return sorted(each for each, plugin in installed.items() if plugin.entries[0].value == value)


def available_backends() -> Mapping[str, Plugin]:
    """The backends that are installed, by name; nothing is imported."""
    return _installed(BACKENDS)


def frontends() -> Mapping[str, Plugin]:
    """The frontends that are installed, by name; nothing is imported."""
    return _installed(FRONTENDS)


@cache
def hooks() -> pluggy.PluginManager:
    """The hooks of core.hookspecs; `load_hooks` registers the plugins that are installed."""
    manager = pluggy.PluginManager("core")
    manager.add_hookspecs(hookspecs)
    return manager


def load_hooks() -> None:
    """Import and register the modules of group core.plugins. Once, before the server is made.

    A plugin that cannot be imported is left out with an error in the log. Raises CoreError(INVALID)
    for a function that looks like a hook and is none.
    """
    for name, plugin in _installed(HOOKS).items():
        try:
            hooks().register(plugin.load(), name=name)
        except Exception as error:
            logger.error("plugin '%s' is left out: %s", name, error)
    try:
        hooks().check_pending()
    except pluggy.PluginValidationError as error:
        raise invalid(f"a plugin has a hook that does not exist: {error}") from error


def _installed(group: str) -> Mapping[str, Plugin]:
    blocked = _blocked()
    return {name: plugin for name, plugin in _scan(group).items() if name not in blocked}


def _blocked() -> set[str]:
    return {name.strip() for name in os.environ.get("CORE_BLOCK", "").split(",")}


@cache
def _entries() -> Any:  # EntryPoints; Python 3.10 has another class that selects
    """The entry points of every distribution: one walk over the folders of all for all groups."""
    return metadata.entry_points()


@cache
def _scan(group: str) -> Mapping[str, Plugin]:
    found: dict[str, dict[str, metadata.EntryPoint]] = {}
    for entry in _entries().select(group=group):
        # One distribution may be seen twice, when its folder is on the path and it is installed too.
        owner = entry.dist.name if entry.dist is not None else ""
        found.setdefault(entry.name, {}).setdefault(owner, entry)
    return {name: Plugin(name, group, tuple(each.values())) for name, each in sorted(found.items())}


def _distribution(entry: metadata.EntryPoint) -> str:
    if entry.dist is None:
        return "an unknown distribution"
    return f"{entry.dist.name} {entry.dist.version}"
