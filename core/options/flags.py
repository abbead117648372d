"""Flags: all flags of a server: the flags of core, and the flags that other parts register.

hook core_add_options ─► [Flags] ─► command_line.parse ─► Options
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping
from typing import Any

from core.errors import invalid
from core.options.deprecated import ALIASES, DEPRECATED
from core.options.section import Flag, Section, flags_of
from core.options.table import Options
from core.options.values import BOOL, FLOAT, STRING, Form, read_int

GROUP = "Plugins"

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_LIST = Form("<string>", lambda flag, text: text, lambda so_far, new: [*so_far, new])
# By the type of the default. The order is the order of the types in the error text.
_FORMS: dict[type, Form] = {
    bool: BOOL,
    int: Form("<integer>", read_int),
    float: FLOAT,
    str: STRING,
    list: _LIST,
}


class Flags:
    """The permitted flags of the command line. Used on the main thread, before the command line is read.

    hint   unknown name of a flag → end of the error text, or ""
    """

    def __init__(self, hint: Callable[[str], str] = lambda name: "") -> None:
        self.hint = hint
        self._sections: list[type[Section]] = []
        self._singles: list[Flag] = []
        own = (flag.name for flag in flags_of(Options) if not flag.idle)
        self._taken = {*own, *DEPRECATED, *ALIASES, "help"}

    def add_section(self, section: type[Section]) -> None:
        """Add a section's flags. Raises CoreError(INVALID) if one exists already and has an effect."""
        for flag in flags_of(section):
            self._take(flag.name, flag.idle)
        self._sections.append(section)

    def add(self, name: str, default: bool | int | float | str | list[str], help: str) -> None:
        """Add --<name>.

        default   of the type of the values: bool, int, float, str, or list of str for a flag that may be
                  repeated
        help      one sentence for --help

        The flag replaces a flag of that name without effect. Raises CoreError(INVALID) for a name that is
        invalid or exists, and for a default of another type.
        """
        if _NAME.fullmatch(name) is None:
            raise invalid(
                f"'{name}' cannot be a flag: lower-case words with - between, such as s3-region"
            )
        form = _FORMS.get(type(default))
        if form is None:
            kinds = ", ".join(each.__name__ for each in _FORMS)
            raise invalid(
                f"flag --{name}: its default is of type {type(default).__name__}, not one of {kinds}"
            )
        self._take(name)
        self._singles.append(Flag(name, name.replace("-", "_"), GROUP, form, default, help))

    def _take(self, name: str, idle: str = "") -> None:
        if name in self._taken:
            raise invalid(f"flag --{name} is there already")
        if not idle:
            self._taken.add(name)

    @property
    def rows(self) -> list[Flag]:
        """All flags in the order of --help: by group; within a group, in the order of registration."""
        added = self._added()
        replaced = {flag.name for flag in added}
        rows = [flag for flag in flags_of(Options) if flag.name not in replaced] + added
        titles = list(dict.fromkeys(flag.group for flag in rows if flag.group != GROUP))
        return sorted(rows, key=lambda flag: [*titles, GROUP].index(flag.group))

    def _added(self) -> list[Flag]:
        """Return the flags whose values are in `Options.added`."""
        registered = [flag for section in self._sections for flag in flags_of(section)]
        replaced = {flag.name for flag in self._singles}
        return [flag for flag in registered if flag.name not in replaced] + self._singles

    def options(self, given: Mapping[str, Any], *, environment: bool = False) -> Options:
        """Return the options of a server.

        given         name of a flag with underscores → value, for the flags that the user sets
        environment   whether environment variables may set the other flags
        """
        values = dict(given)
        notes = [note for section in self._sections for note in section.complete(values)]
        for section in self._sections if environment else ():
            values = {**section.from_environment(), **values}
        added = {flag.field: copy.copy(flag.default) for flag in self._added()}
        found = Options(added=added, parts=tuple(self._sections), notes=tuple(notes))
        return found.changed(**values)
