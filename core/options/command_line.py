"""The command line: `--name=value`, `--name value`, unique beginnings of names, as getopt_long has it."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from core.options import platforms
from core.options.added import defaults_of
from core.options.checks import check_together
from core.options.deprecated import ALIASES, DEPRECATED, replacement
from core.options.secure import harden
from core.options.table import FLAGS, Flag, Options
from core.options.values import UsageError


class HelpWanted(Exception):
    """--help was on the command line."""


def _print_warning(text: str) -> None:
    print(text, file=sys.stderr)


def parse(
    arguments: Sequence[str],
    warn: Callable[[str], None] = _print_warning,
    added: Sequence[Flag] = (),
) -> Options:
    """The options that a command line gives.

    warn    is told about each deprecated flag
    added   flags of plugins; their values are in options.added
    Raises UsageError for what cannot be followed, HelpWanted for --help.
    """
    flags = {flag.name: flag for flag in (*FLAGS, *added)}
    of_plugins = {flag.name for flag in added}
    values: dict[str, Any] = {}
    theirs = defaults_of(added)
    for name, text in _pairs(arguments, flags):
        if name in DEPRECATED:
            replaced = replacement(DEPRECATED[name], text, warn)
            if replaced is None:
                continue
            name, text = replaced
        flag = flags[name]
        new = flag.form.read(name, text)
        found = theirs if name in of_plugins else values
        found[flag.field] = flag.form.merge(found.get(flag.field, flag.default), new)
    values.setdefault("model_repository", platforms.storage())
    options = Options(**harden(values), added=theirs)
    check_together(options)
    return options


def _pairs(arguments: Sequence[str], flags: Mapping[str, Flag]) -> Iterator[tuple[str, str]]:
    """(full name of a flag, its text) in the order of the command line."""
    rest = iter(arguments)
    for argument in rest:
        if not argument.startswith("--") or argument == "--":
            if argument == "--" and not (argument := next(rest, "")):
                return
            raise UsageError(f"Unexpected argument: {argument}")
        typed, equals, text = argument[2:].partition("=")
        name = _full_name(typed, argument, sorted([*flags, *DEPRECATED, *ALIASES]))
        if name in DEPRECATED or flags[name].form.metavar:
            if not equals:
                value = next(rest, None)
                if value is None:
                    raise UsageError(f"option '--{name}' requires an argument")
                text = value
        elif equals:
            raise UsageError(f"option '--{name}' doesn't allow an argument")
        yield name, text


def _full_name(typed: str, argument: str, names: Sequence[str]) -> str:
    if typed == "help":
        raise HelpWanted
    if typed not in names:
        found = [name for name in names if typed and name.startswith(typed)]
        if len(found) > 1:
            possibilities = " ".join(f"'--{name}'" for name in found)
            raise UsageError(f"option '{argument}' is ambiguous; possibilities: {possibilities}")
        if not found:
            near = difflib.get_close_matches(typed, names, 1)
            hint = f"; did you mean '--{near[0]}'?" if near else ""
            raise UsageError(f"unrecognized option '{argument}'{hint}")
        typed = found[0]
    return ALIASES.get(typed, typed)
