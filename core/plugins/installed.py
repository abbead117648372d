"""Finds the plugins of installed distributions by entry point. Only names are read here.

CORE_BLOCK=name,… hides plugins by their name or their distribution's name, in every group.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib import metadata
from typing import Any

from core.errors import described, internal, invalid, raised_at

API = "core.api"
BACKENDS = "core.backends"
FRONTENDS = "core.frontends"
HOOKS = "core.plugins"
COMMANDS = "core.commands"
FORMATS = "core.formats"
PROCESS_HOSTS = "core.process_host"

_KINDS = {
    API: "name",
    BACKENDS: "backend",
    FRONTENDS: "frontend",
    HOOKS: "plugin",
    COMMANDS: "command",
    PROCESS_HOSTS: "process host",
}


@dataclass(frozen=True)
class Plugin:
    """A named plugin of a distribution; its module may not be imported yet.

    name      in configurations
    group     of entry points, such as BACKENDS
    entries   usually one; several if distributions conflict over the name; none for a folder
    """

    name: str
    group: str
    entries: tuple[metadata.EntryPoint, ...]

    @property
    def distribution(self) -> str:
        """Return name and version of the distribution, or of each of the conflicting distributions."""
        return " and ".join(map(_distribution, self.entries))

    def load(self) -> Any:
        """Return the plugin's object; import its module on first use.

        Raises CoreError(INVALID) if two distributions have the name, INTERNAL if the import fails.
        """
        kind = _KINDS.get(self.group, self.group)
        if len(self.entries) > 1:
            raise invalid(
                f"{kind} '{self.name}' comes from two distributions: {self.distribution}; "
                "uninstall one of them"
            )
        try:
            return self.entries[0].load()
        except Exception as error:
            raise internal(
                f"{kind} '{self.name}' of {self.distribution} cannot be imported{raised_at(error)}: "
                f"{described(error)}"
            ) from error


def aliases(name: str) -> list[str]:
    """Return every name, sorted, under which the backend `name` is installed; [name] if it is not."""
    there = available_backends()
    if name not in there:
        return [name]
    value = there[name].entries[0].value
    return sorted(each for each, plugin in there.items() if plugin.entries[0].value == value)


def api(name: str) -> Any:
    """Return the object that a distribution adds to the package `core` under that name.

    Raises AttributeError if no distribution has it, and the errors of Plugin.load.
    """
    if (plugin := installed(API).get(name)) is None:
        raise AttributeError(
            f"module 'core' has no attribute '{name}': no installed distribution has an entry point "
            f"'{name}' of group '{API}'; reinstall core, or take '{name}' out of CORE_BLOCK"
        )
    return plugin.load()


def installed(group: str) -> Mapping[str, Plugin]:
    """Return the plugins of a group of entry points by name, without those that CORE_BLOCK hides.

    Nothing is imported. The result is the same object while nothing changes; leave it as it is.
    """
    return _visible(group, frozenset(hidden()))


@cache  # `dist.name` below parses the metadata of a distribution each time, in 0.2 ms
def _visible(group: str, blocked: frozenset[str]) -> Mapping[str, Plugin]:
    found = {}
    for name, plugin in _scan(group).items():
        left = tuple(e for e in plugin.entries if e.dist is None or e.dist.name not in blocked)
        if left and name not in blocked:
            found[name] = plugin if left == plugin.entries else Plugin(name, group, left)
    return found


available_backends = partial(installed, BACKENDS)
frontends = partial(installed, FRONTENDS)
with_hooks = partial(installed, HOOKS)
available_commands = partial(installed, COMMANDS)


def look_again() -> None:
    """Clear the cached lists of plugins. Call after a distribution was installed or removed."""
    for each in (_entries, _scan, _visible):
        each.cache_clear()


def hidden() -> set[str]:
    """Return the names of plugins and distributions that CORE_BLOCK hides; {""} if it is not set."""
    return {name.strip() for name in os.environ.get("CORE_BLOCK", "").split(",")}


@cache
def _entries() -> Any:  # the class with `select` is EntryPoints, and another one in Python 3.10
    """Return the entry points of every distribution: one scan of all folders for all groups."""
    return metadata.entry_points()


@cache
def _scan(group: str) -> Mapping[str, Plugin]:
    found: dict[str, dict[str, metadata.EntryPoint]] = {}
    for entry in _entries().select(group=group):
        # A distribution appears twice if it is installed and its folder is on the path too.
        owner = entry.dist.name if entry.dist is not None else ""
        found.setdefault(entry.name, {}).setdefault(owner, entry)
    return {name: Plugin(name, group, tuple(each.values())) for name, each in sorted(found.items())}


def _distribution(entry: metadata.EntryPoint) -> str:
    if entry.dist is None:
        return "an unknown distribution"
    return f"{entry.dist.name} {entry.dist.version}"
