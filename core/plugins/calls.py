"""Hooks: registers their implementations and calls them. core.hookspecs declares the hooks.

CORE_TRACE_HOOKS=1 writes every call of a hook to stderr.
"""

from __future__ import annotations

import inspect
import logging
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from importlib import import_module
from typing import Any

import pluggy

from core.errors import CoreError, described, internal, invalid, raised_at
from core.options import Flags
from core.plugins.extras import flag_hint
from core.plugins.installed import with_hooks
from core.similar import did_you_mean

logger = logging.getLogger("core")

_registering = threading.Lock()  # models of one process host load in several threads


@cache
def hooks() -> pluggy.PluginManager:
    """Return the manager of hooks with the built-in ones; `load_hooks` registers installed plugins."""
    manager = pluggy.PluginManager("core")
    # Imported here: the specifications name types of modules that call hooks.
    manager.add_hookspecs(import_module("core.hookspecs"))
    # Imported by name: its dependencies lie above this package.
    manager.register(import_module("core.builtin"), name="built in")
    if os.environ.get("CORE_TRACE_HOOKS", "0") not in ("", "0"):
        manager.add_hookcall_monitoring(_trace_call, _trace_end)
    return manager


def load_hooks(*, quiet: bool = False) -> None:
    """Import and register those modules of group core.plugins that are not registered. Main or loop thread.

    quiet   do not report plugins that cannot be imported; a later call does, when the log exists
    A plugin that cannot be imported is left out with an error in the log. Raises the errors of `check_hooks`.
    """
    for name, plugin in with_hooks().items():
        if hooks().has_plugin(name):
            continue
        try:
            found = plugin.load()
        except CoreError as error:
            if not quiet:
                logger.error("plugin '%s' is left out: %s", name, error)
        else:
            register(found, name)
    if listens("core_failed"):
        for name in ("core", "asyncio"):
            logging.getLogger(name).addHandler(_failures)


def register(plugin: object, name: str) -> None:
    """Register, once, an object that may have hooks. Any thread. Raises the errors of `check_hooks`."""
    with _registering:
        if not hooks().is_registered(plugin):
            check_hooks(plugin, name)
            hooks().register(plugin, name=name)


def check_hooks(plugin: object, name: str) -> None:
    """Raise CoreError(INVALID) for a hook, or an argument of one, that does not exist, with the nearest name.

    Also for a function that has the name of a hook and is not marked: core would never call it.
    """
    specs = {each: caller.spec for each, caller in vars(hooks().hook).items() if caller.spec}
    for method in dir(plugin):
        marked = hooks().parse_hookimpl_opts(plugin, method)
        if marked is None:
            if method in specs and inspect.isroutine(getattr(plugin, method)):
                raise invalid(
                    f"plugin '{name}': {method} is no hook without @core.hookimpl above it"
                )
            continue
        hook = marked["specname"] or method
        if hook not in specs:
            hint = _nearest(hook, specs)
            raise invalid(f"plugin '{name}' has a hook that does not exist: '{hook}'{hint}")
        for argument in pluggy.HookImpl(plugin, name, getattr(plugin, method), marked).argnames:
            if argument not in (known := specs[hook].argnames):
                hint = _nearest(argument, known)
                raise invalid(f"plugin '{name}': hook {hook} has no argument '{argument}'{hint}")


def _nearest(name: str, known: Iterable[str]) -> str:
    return did_you_mean(name, known) or f"; there are {', '.join(sorted(known)) or 'none'}"


def listens(hook: str) -> bool:
    """Return whether any plugin implements the hook."""
    return bool(getattr(hooks().hook, hook).get_hookimpls())


def ask(hook: str, **arguments: Any) -> Any:
    """Call a hook; return its results without None. With `firstresult`, return the first one, or None.

    Raises the CoreError of a plugin unchanged, and CoreError(INTERNAL) with its name for other exceptions.
    """
    caller = getattr(hooks().hook, hook)
    try:
        return caller(**arguments)
    except CoreError:
        raise
    except Exception as error:
        raise _failed(_culprit(caller, error), hook, error) from error


def ask_each(hook: str, **arguments: Any) -> list[tuple[str, Any]]:
    """Call a hook of every plugin. Return (plugin, result) pairs without None. Raises what `ask` raises."""
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
    """Call a hook of every plugin. An exception is logged with the plugin's name; the others still run."""
    teller = teller_of(hook)
    if teller is None:
        getattr(hooks().hook, hook)(**arguments)  # calls no plugin, but CORE_TRACE_HOOKS shows it
    else:
        teller(**arguments)


def teller_of(hook: str) -> Callable[..., None] | None:
    """Return a fast `tell` that calls the plugins registered now; None if none implements the hook."""
    callers = _callers(hook)
    if not callers:
        return None

    def teller(**arguments: Any) -> None:
        for plugin, caller in callers:
            try:
                caller(**arguments)
            except Exception as error:
                # An error in core_failed must not call core_failed again.
                seen = None if hook == "core_failed" else error
                logger.error("%s", _failed(plugin, hook, error).message, exc_info=seen)

    return teller


def _callers(hook: str) -> list[tuple[str, Callable[..., Any]]]:
    """Return (plugin name, its implementation of the hook) pairs, in call order."""
    return _callers_of(hook, tuple(getattr(hooks().hook, hook).get_hookimpls()))


@lru_cache
def _callers_of(hook: str, known: Sequence[Any]) -> list[tuple[str, Callable[..., Any]]]:
    plugins = hooks().get_plugins()
    return [
        (each.plugin_name, hooks().subset_hook_caller(hook, plugins - {each.plugin}))
        for each in reversed(known)
    ]


def _failed(plugin: str, hook: str, error: Exception) -> CoreError:
    return internal(f"plugin '{plugin}' failed in {hook}{raised_at(error)}: {described(error)}")


def _culprit(caller: pluggy.HookCaller, error: Exception) -> str:
    """Return the plugin whose function raised or passed on the exception, or the text "of unknown name"."""
    names = {
        getattr(inspect.unwrap(each.function), "__code__", None): each.plugin_name
        for each in caller.get_hookimpls()
    }
    codes = (frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__))
    return next((names[code] for code in codes if code in names), "of unknown name")


class _Failures(logging.Handler):
    """Log handler that passes error records with an exception to the hook core_failed. Any thread."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            tell("core_failed", error=error, where=record.getMessage())


_failures = _Failures(logging.ERROR)


def flags() -> Flags:
    """Load the hooks, and return the flags of all parts. Main thread. Raises CoreError: see `ask`.

    Plugins that cannot be imported are left out; the start of the server logs them, and the error for an
    unknown flag names them.
    """
    load_hooks(quiet=True)
    parser = Flags(lambda name: flag_hint(name) or _left_out())
    ask("core_add_options", parser=parser)
    return parser


def _left_out() -> str:
    """Register the plugins that are left out; return the end of an error text that names those that fail."""
    found = []
    for name, plugin in with_hooks().items():
        try:
            if not hooks().has_plugin(name):
                register(plugin.load(), name)
        except Exception as error:
            found.append(f"; plugin '{name}' is left out: {' '.join(str(error).split())}")
    return "".join(found)


def _trace_call(hook: str, found: Sequence[Any], arguments: Mapping[str, Any]) -> None:
    names = ", ".join(each.plugin_name for each in reversed(found)) or "nobody"
    shown = ", ".join(f"{name}={_cut(repr(value))}" for name, value in arguments.items())
    print(f"hook {hook}({shown}) → {names}", file=sys.stderr)


def _trace_end(outcome: Any, hook: str, found: Sequence[Any], arguments: Mapping[str, Any]) -> None:
    if found:
        error = outcome.exception
        result = f"raised {error!r}" if error is not None else f"gave {outcome.get_result()!r}"
        print(f"hook {hook} {_cut(result)}", file=sys.stderr)


def _cut(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:79]}…"
