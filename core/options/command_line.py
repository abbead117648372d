"""The command line: `--name=value`, `--name value`, unique beginnings of names, as getopt_long has it."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from core.options.checks import check_together
from core.options.deprecated import ALIASES, DEPRECATED, replacement
from core.options.table import FLAGS, Options
from core.options.values import UsageError

_BY_NAME = {flag.name: flag for flag in FLAGS}
_NAMES = sorted([*_BY_NAME, *DEPRECATED, *ALIASES])


class HelpWanted(Exception):
    """--help was on the command line."""


def _print_warning(text: str) -> None:
    print(text, file=sys.stderr)


def parse(arguments: Sequence[str], warn: Callable[[str], None] = _print_warning) -> Options:
    """The options that a command line gives.

    warn   is told about each deprecated flag
    Raises UsageError for what cannot be followed, HelpWanted for --help.
    """
    values: dict[str, Any] = {}
    for name, text in _pairs(arguments):
        if name in DEPRECATED:
            replaced = replacement(DEPRECATED[name], text, warn)
            if replaced is None:
                continue
            name, text = replaced
        flag = _BY_NAME[name]
        new = flag.form.read(name, text)
        values[flag.field] = flag.form.merge(values.get(flag.field, flag.default), new)
    options = Options(**values)
    check_together(options)
    return options


def _pairs(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(full name of a flag, its text) in the order of the command line."""
    rest = iter(arguments)
    for argument in rest:
        if not argument.startswith("--") or argument == "--":
            if argument == "--" and not (argument := next(rest, "")):
                return
            raise UsageError(f"Unexpected argument: {argument}")
        typed, equals, text = argument[2:].partition("=")
        name = _full_name(typed, argument)
        if _takes_value(name):
            if not equals:
                value = next(rest, None)
                if value is None:
                    raise UsageError(f"option '--{name}' requires an argument")
                text = value
        elif equals:
            raise UsageError(f"option '--{name}' doesn't allow an argument")
        yield name, text


def _full_name(typed: str, argument: str) -> str:
    if typed == "help":
        raise HelpWanted
    if typed not in _NAMES:
        found = [name for name in _NAMES if typed and name.startswith(typed)]
        if len(found) > 1:
            possibilities = " ".join(f"'--{name}'" for name in found)
            raise UsageError(f"option '{argument}' is ambiguous; possibilities: {possibilities}")
        if not found:
            near = difflib.get_close_matches(typed, _NAMES, 1)
            hint = f"; did you mean '--{near[0]}'?" if near else ""
            raise UsageError(f"unrecognized option '{argument}'{hint}")
        typed = found[0]
    return ALIASES.get(typed, typed)


def _takes_value(name: str) -> bool:
    return name in DEPRECATED or bool(_BY_NAME[name].form.metavar)
