"""AddedFlags: flags that plugins add to the command line.

hook core_add_options ─► [AddedFlags] ─► command_line.parse ─► options.added
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from core.errors import invalid
from core.options.deprecated import ALIASES, DEPRECATED
from core.options.table import FLAGS, Flag
from core.options.values import BOOL, FLOAT, STRING, Form, read_int

GROUP = "Plugins"

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_LIST = Form("<string>", lambda flag, text: text, lambda so_far, new: [*so_far, new])
# By the type of the default; bool before int, which it is too.
_FORMS: dict[type, Form] = {
    bool: BOOL,
    int: Form("<integer>", read_int),
    float: FLOAT,
    str: STRING,
    list: _LIST,
}


class AddedFlags:
    """What plugins have added so far. Main thread, before the command line is read."""

    def __init__(self) -> None:
        self.flags: list[Flag] = []

    def add(self, name: str, default: bool | int | float | str | list[str], help: str) -> None:
        """Add --<name>.

        default   its type says what the flag takes: a bool, an int, a float, a str, or a list of str for a
                  flag that may be given several times
        help      one sentence for --help

        It takes the place of a flag that has no effect in core. Raises CoreError(INVALID) for a name that is
        invalid or taken, and for a default of another type.
        """
        if _NAME.fullmatch(name) is None:
            raise invalid(
                f"'{name}' cannot be a flag: lower-case words with - between, such as s3-region"
            )
        active = (flag for flag in FLAGS if not flag.idle)
        taken = {flag.name for flag in (*active, *self.flags)} | {*DEPRECATED, *ALIASES, "help"}
        if name in taken:
            raise invalid(f"flag --{name} is there already")
        form = _FORMS.get(type(default))
        if form is None:
            kinds = ", ".join(each.__name__ for each in _FORMS)
            raise invalid(
                f"flag --{name}: its default is of type {type(default).__name__}, not one of {kinds}"
            )
        field = name.replace("-", "_")
        self.flags.append(Flag(name, field, GROUP, form, default, help, ""))


def defaults_of(added: Iterable[Flag]) -> dict[str, Any]:
    """What options.added is when no command line says otherwise."""
    return {
        flag.field: list(flag.default) if isinstance(flag.default, list) else flag.default
        for flag in added
    }
