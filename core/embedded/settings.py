"""Options of a server in this process: keyword arguments ─► [options_of] ─► Options.

Every flag of the command line, those of plugins too, by its name with underscores. A value is what the flag's
text would become, or the text itself.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping
from typing import Any

from core import plugins
from core.errors import CoreError, invalid
from core.options import FLAGS, Flag, Options, UsageError, check_server, defaults_of, harden

_BY_FIELD = {flag.field: flag for flag in FLAGS}
_MODELS = ("model_repository", "load_model")  # a path or a name, or several


def options_of(settings: Mapping[str, Any]) -> Options:
    """The options that keyword arguments give.

    Raises CoreError(INVALID) for a name that is no option, with the nearest one, for a value that the
    option cannot have, and for options from which no server can be made.
    """
    plugins.load_hooks(quiet=True)  # what is left out is logged when the server starts
    added = {flag.field: flag for flag in plugins.added_flags()}
    flags = _BY_FIELD | added
    values = {name: _value(_flag(name, flags), value) for name, value in settings.items()}
    theirs = {name: values.pop(name) for name in added.keys() & values.keys()}
    values.setdefault("allow_vertex_ai", False)  # no port opens unless the program says so
    options = Options(**harden(values), added=defaults_of(added.values()) | theirs)
    if options.workers != 1:
        raise invalid(
            f"workers={options.workers} is for core-serve: a server in this process is one process"
        )
    if options.load_model and options.model_control_mode != "explicit":
        raise invalid("load_model needs model_control_mode='explicit'; without it all models load")
    check_server(options, without_models=True)
    return options


def _flag(name: str, flags: Mapping[str, Flag]) -> Flag:
    if (flag := flags.get(name)) is None:
        near = difflib.get_close_matches(name, flags, 1)
        hint = f"did you mean '{near[0]}'?" if near else "docs/options.md lists them"
        raise invalid(f"a server has no option '{name}'; {hint}")
    return flag


def _value(flag: Flag, value: Any) -> Any:
    try:
        if flag.field in _MODELS:
            return sorted({os.fspath(each) for each in _listed(value)})
        if flag.form.repeats:
            return _merged(flag, value)
        if not flag.form.metavar or isinstance(flag.default, bool):
            return _truth(flag, value)
        if isinstance(flag.default, tuple) and _are_names(value):
            value = ",".join(value) or "none"
        if isinstance(value, bool) or not isinstance(value, int | float | str | os.PathLike):
            raise _wrong(flag, value)
        return flag.form.read(flag.name, str(value))
    except UsageError as error:
        raise invalid(f"option '{flag.field}': {error}") from None


def _are_names(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)


def _listed(value: Any) -> Iterable[Any]:
    return [value] if isinstance(value, str | os.PathLike) else value


def _merged(flag: Flag, value: Any) -> Any:
    """A value that several uses of the flag make: as it is, or the texts of those uses."""
    if isinstance(value, type(flag.default)) and not isinstance(value, list):
        return value
    if not isinstance(value, str | list | tuple):
        raise _wrong(flag, value)
    merged = flag.default
    for text in _listed(value):
        merged = flag.form.merge(merged, flag.form.read(flag.name, text))
    return merged


def _truth(flag: Flag, value: Any) -> bool:
    if not isinstance(value, bool):
        raise _wrong(flag, value)
    return value


def _wrong(flag: Flag, value: Any) -> CoreError:
    form = flag.form.metavar or "<boolean>"
    return invalid(
        f"option '{flag.field}' takes {form} (by default {flag.default!r}), "
        f"got {value!r} of type {type(value).__name__}"
    )
