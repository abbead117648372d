"""What other distributions bring: backends, frontends and hooks, found by entry point.

At the start only names are read; a module is imported when somebody asks for what it brings. A
broken plugin fails those who ask for it, and nobody else.

CORE_BLOCK=name,… hides plugins by their name or their distribution's, whatever their group.
CORE_TRACE_HOOKS=1 writes every call of a hook to stderr.
"""

from __future__ import annotations

import difflib
import inspect
import logging
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import pluggy

from core import hookspecs
from core.backend import Backend
from core.errors import CoreError, internal, invalid
from core.options import AddedFlags, Flag

logger = logging.getLogger("core")

BACKENDS = "core.backends"
FRONTENDS = "core.frontends"
HOOKS = "core.plugins"

_KINDS = {BACKENDS: "backend", FRONTENDS: "frontend", HOOKS: "plugin"}
# Words of configurations whose distribution has another name.
_DISTRIBUTIONS = {
    "onnxruntime": "backend-onnx",
    **dict.fromkeys(("identity", "repeat", "square"), "backend-testing"),
}

# What a folder of --backend-directory may hold, and the backend that makes one of it.
_RUNTIMES = {"model.py": "python"}

# The backend that has processes for the models of others.
_PROCESSES = "python"

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
        _register(found, f"backend {name}")
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
    if not directory or name in _blocked() or name != folder.name or name == "..":
        return None
    return next((file for file in _RUNTIMES if (folder / file).is_file()), None)


def apart(found: Backend) -> Backend:
    """What runs the models of a backend in processes of their own. Any thread.

    Raises CoreError(INVALID) when nothing is installed that can.
    """
    if _PROCESSES not in available_backends():
        raise invalid(
            f"EXECUTION_MODE 'process' of a model of backend '{found.name}' needs backend "
            f"'{_PROCESSES}', which has the processes; try: pip install backend-{_PROCESSES}"
        )
    return backend(_PROCESSES).keep_apart(found)


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


def with_hooks() -> Mapping[str, Plugin]:
    """The modules of hooks that are installed, by name; nothing is imported."""
    return _installed(HOOKS)


# Hooks ---------------------------------------------------------------------------------


@cache
def hooks() -> pluggy.PluginManager:
    """The hooks of core.hookspecs; `load_hooks` registers the plugins that are installed."""
    manager = pluggy.PluginManager("core")
    manager.add_hookspecs(hookspecs)
    if os.environ.get("CORE_TRACE_HOOKS", "0") not in ("", "0"):
        manager.add_hookcall_monitoring(_trace_call, _trace_end)
    return manager


def load_hooks(*, quiet: bool = False) -> None:
    """Import and register the modules of group core.plugins, those that are not yet. Main or loop thread.

    quiet   says nothing of plugins that cannot be imported: somebody will, when there is a log
    A plugin that cannot be imported is left out with an error in the log. Raises CoreError(INVALID)
    for a function that looks like a hook and is none.
    """
    for name, plugin in with_hooks().items():
        if hooks().has_plugin(name):
            continue
        try:
            hooks().register(plugin.load(), name=name)
        except Exception as error:
            if not quiet:
                logger.error("plugin '%s' is left out: %s", name, error)
    _refuse_unknown_hooks()
    if listens("core_failed"):
        for name in ("core", "asyncio"):
            logging.getLogger(name).addHandler(_failures)


def _register(plugin: object, name: str) -> None:
    """Register a backend that may carry hooks. Raises CoreError(INVALID) for one that does not exist."""
    hooks().register(plugin, name=name)
    try:
        _refuse_unknown_hooks()
    except CoreError:
        hooks().unregister(plugin)
        raise


def _refuse_unknown_hooks() -> None:
    """What check_pending of pluggy does, naming the plugin and the hook that was perhaps meant."""
    relay = hooks().hook
    known = [name for name in vars(relay) if getattr(relay, name).has_spec()]
    for name, caller in vars(relay).items():
        for found in () if caller.has_spec() else caller.get_hookimpls():
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean '{near[0]}'?" if near else f"there are {', '.join(sorted(known))}"
            raise invalid(
                f"plugin '{found.plugin_name}' has a hook that does not exist: '{name}'; {hint}"
            )


def listens(hook: str) -> bool:
    """Whether any plugin implements the hook."""
    return bool(getattr(hooks().hook, hook).get_hookimpls())


def ask(hook: str, **arguments: Any) -> Any:
    """Call a hook whose outcome somebody needs; what pluggy gives: a list, or the first result.

    Raises the CoreError of a plugin as it is, and CoreError(INTERNAL) that names it for another exception.
    """
    caller = getattr(hooks().hook, hook)
    try:
        return caller(**arguments)
    except CoreError:
        raise
    except Exception as error:
        raise _failed(_culprit(caller, error), hook, error) from error


def ask_each(hook: str, **arguments: Any) -> list[tuple[str, Any]]:
    """The same for a hook with many results: (name of the plugin, what it gave), without those of None."""
    found = []
    for plugin, caller in _callers(hook):
        try:
            results = caller(**arguments)
        except CoreError:
            raise
        except Exception as error:
            raise _failed(plugin, hook, error) from error
        found += [(plugin, result) for result in results]
    return found


def tell(hook: str, **arguments: Any) -> None:
    """Call a hook of everybody. What one raises is logged with its name; the others are told all the same."""
    teller = teller_of(hook)
    if teller is None:
        getattr(hooks().hook, hook)(**arguments)  # reaches nobody, and CORE_TRACE_HOOKS shows it
    else:
        teller(**arguments)


def teller_of(hook: str) -> Callable[..., None] | None:
    """`tell` for who tells often; None while nobody listens."""
    callers = _callers(hook)
    if not callers:
        return None

    def told(**arguments: Any) -> None:
        for plugin, caller in callers:
            try:
                caller(**arguments)
            except Exception as error:
                # One that fails to hear of failures must not hear of that.
                seen = None if hook == "core_failed" else error
                logger.error("%s", _failed(plugin, hook, error).message, exc_info=seen)

    return told


def _callers(hook: str) -> list[tuple[str, Callable[..., Any]]]:
    """The hook of each plugin alone, by the plugin's name, in the order of calls."""
    manager = hooks()
    found: list[tuple[str, Callable[..., Any]]] = []
    for each in reversed(getattr(manager.hook, hook).get_hookimpls()):
        others = [plugin for plugin in manager.get_plugins() if plugin is not each.plugin]
        found.append((each.plugin_name, manager.subset_hook_caller(hook, others)))
    return found


def _failed(plugin: str, hook: str, error: Exception) -> CoreError:
    return internal(f"plugin '{plugin}' failed in {hook}: {type(error).__name__}: {error}")


def _culprit(caller: pluggy.HookCaller, error: Exception) -> str:
    """The plugin whose function the exception came through."""
    names = {
        getattr(inspect.unwrap(each.function), "__code__", None): each.plugin_name
        for each in caller.get_hookimpls()
    }
    codes = (frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__))
    return next((names[code] for code in codes if code in names), "of unknown name")


class _Failures(logging.Handler):
    """Tells core_failed of what is only in the log: records with an exception. Any thread."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            tell("core_failed", error=error, where=record.getMessage())


_failures = _Failures(logging.ERROR)


def added_flags() -> list[Flag]:
    """The flags that plugins add to the command line; after load_hooks. Raises CoreError, see `ask`."""
    parser = AddedFlags()
    ask("core_add_options", parser=parser)
    return parser.flags


def _trace_call(hook: str, found: Sequence[Any], arguments: Mapping[str, Any]) -> None:
    names = ", ".join(each.plugin_name for each in reversed(found)) or "nobody"
    told = ", ".join(f"{name}={_cut(repr(value))}" for name, value in arguments.items())
    print(f"hook {hook}({told}) → {names}", file=sys.stderr)


def _trace_end(outcome: Any, hook: str, found: Sequence[Any], arguments: Mapping[str, Any]) -> None:
    if found:
        error = outcome.exception
        result = f"raised {error!r}" if error is not None else f"gave {outcome.get_result()!r}"
        print(f"hook {hook} {_cut(result)}", file=sys.stderr)


def _cut(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:79]}…"


# What is installed ----------------------------------------------------------------------


def _installed(group: str) -> Mapping[str, Plugin]:
    blocked = _blocked()
    found = {}
    for name, plugin in _scan(group).items():
        left = tuple(e for e in plugin.entries if e.dist is None or e.dist.name not in blocked)
        if left and name not in blocked:
            found[name] = plugin if left == plugin.entries else Plugin(name, group, left)
    return found


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
