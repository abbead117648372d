"""Options of a server inside a program: keyword arguments ─► [options_of] ─► Options.

An argument is a flag of the command line, also of a plugin, with underscores instead of hyphens. Its value
is the flag's text, or the value that this text stands for.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping
from typing import Any

from core import plugins
from core.errors import CoreError, invalid
from core.options import Flag, Flags, Options, UsageError, check_server

_MODELS = ("model_repository", "load_model")  # one path or name, or several


def options_of(settings: Mapping[str, Any]) -> Options:
    """Return the options for keyword arguments.

    Raises CoreError(INVALID) for an unknown option, with the most similar one, for an invalid value, and
    for options that exclude each other.
    """
    flags = plugins.flags()
    known = {flag.field: flag for flag in flags.rows}
    options = flags.options(
        {name: _value(_flag(name, known, flags), value) for name, value in settings.items()}
    )
    if options.workers != 1:
        raise invalid(
            f"workers={options.workers} is for core-serve: a server in this process is one process"
        )
    if options.load_model and options.model_control_mode != "explicit":
        raise invalid("load_model needs model_control_mode='explicit'; without it all models load")
    check_server(options, without_models=True)
    return options


def _flag(name: str, known: Mapping[str, Flag], flags: Flags) -> Flag:
    if (flag := known.get(name)) is None:
        near = difflib.get_close_matches(name, known, 1)
        similar = f"; did you mean '{near[0]}'?" if near else "; docs/operate/options.md lists them"
        hint = flags.hint(name.replace("_", "-")) or similar
        raise invalid(f"a server has no option '{name}'{hint}")
    return flag


def _value(flag: Flag, value: Any) -> Any:
    try:
        if flag.field in _MODELS:
            return sorted({os.fspath(each) for each in _listed(value)})
        if flag.form.repeats:
            return _merged(flag, value)
        if not flag.form.metavar or isinstance(flag.default, bool):
            if not isinstance(value, bool):
                raise _wrong(flag, value)
            return value
        if isinstance(flag.default, tuple) and _are_names(value):
            if tuple(value) == flag.default:
                return flag.default
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
    """Return the value of a flag that may repeat.

    value   that value itself; or a text, or several, one for each use of the flag: they are read and merged
    """
    if isinstance(value, type(flag.default)) and not isinstance(value, list):
        return value
    if not isinstance(value, str | list | tuple):
        raise _wrong(flag, value)
    merged = flag.default
    for text in _listed(value):
        merged = flag.form.merge(merged, flag.form.read(flag.name, text))
    return merged


def _wrong(flag: Flag, value: Any) -> CoreError:
    form = flag.form.metavar or "<boolean>"
    return invalid(
        f"option '{flag.field}' takes {form} (by default {flag.default!r}), "
        f"got {value!r} of type {type(value).__name__}"
    )
