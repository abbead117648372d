"""Finds agents by name: from plugins, built in, or in a folder of --repoagent-directory."""

from __future__ import annotations

import importlib.util
import sys
import threading
from pathlib import Path

from core import plugins
from core.errors import CoreError, internal, invalid
from core.repository.agents.agent import RepositoryAgent

_FILE = "agent.py"

_lock = threading.RLock()
# Name and directory → agent and its origin. Under _lock.
_found: dict[tuple[str, str], tuple[RepositoryAgent, str]] = {}


def find_agent(name: str, directory: str = "") -> RepositoryAgent:
    """Return the agent of that name; create it on first use. Worker threads; calls wait for one another.

    directory   parent of the folders with agents, "" for none
    Plugins take precedence, then built-in agents, then the folders.
    Raises CoreError: INVALID if there is none, INTERNAL if it cannot be created; or the agent's own.
    """
    with _lock:
        if (name, directory) not in _found:
            _found[name, directory] = _open(name, directory)
        return _found[name, directory][0]


def agents_used() -> list[tuple[str, str]]:
    """Return (name, "built in", "plugin" or its file) of each agent created so far, for the startup table."""
    with _lock:
        return sorted((name, origin) for (name, _), (_, origin) in _found.items())


def _open(name: str, directory: str) -> tuple[RepositoryAgent, str]:
    agent: object | None = plugins.ask("core_open_repository_agent", name=name)
    origin = "built in" if type(agent).__module__.startswith("core.") else "plugin"
    if agent is None:
        agent, origin = _of_folder(name, directory), str(Path(directory, name, _FILE))
    if agent is None:
        raise _unknown(name, directory)
    if not isinstance(agent, RepositoryAgent):
        raise internal(
            f"repository agent '{name}' ({origin}) is a {type(agent).__name__}, not a core.RepositoryAgent"
        )
    agent.name = agent.name or name
    return agent, origin


def _of_folder(name: str, directory: str) -> object | None:
    """Return `agent` of <directory>/<name>/agent.py, None without this file. Raises CoreError if it fails."""
    file = Path(directory, name, _FILE)
    if not directory or name != file.parent.name or name == ".." or not file.is_file():
        return None
    module_name = f"core_repository_agent_{name}"
    spec = importlib.util.spec_from_file_location(module_name, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # where pickle and dataclasses look for it
    try:
        spec.loader.exec_module(module)
        return module.agent  # type: ignore[no-any-return]
    except CoreError:
        raise
    except Exception as error:
        sys.modules.pop(module_name, None)
        raise internal(
            f"repository agent '{name}': {file} cannot be imported, or has no `agent`: "
            f"{type(error).__name__}: {error}"
        ) from error


def _unknown(name: str, directory: str) -> CoreError:
    library = f"libtritonrepoagent_{name}.so"
    file = Path(directory, name, library)
    if directory and name == file.parent.name and file.exists():
        return invalid(
            f"repository agent '{name}': {file} is a shared library made for Triton, which "
            f"this server cannot call; write {Path(directory, name, _FILE)} instead, or a plugin"
        )
    return invalid(
        f"unable to find repository agent '{name}': it is not built in, no plugin brings it, and there is no "
        f"<name>/{_FILE} in '{directory}'{plugins.install_hint(name)}"
    )
