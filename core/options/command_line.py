"""The command line: `--name=value`, `--name value` and unique prefixes of names, as in getopt_long."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from core.options.checks import check_together
from core.options.deprecated import ALIASES, DEPRECATED
from core.options.flags import Flags
from core.options.section import Flag
from core.options.table import Options
from core.options.values import UsageError


class HelpWanted(Exception):
    """Raised if the command line contains --help."""


def _print_warning(text: str) -> None:
    print(text, file=sys.stderr)


def parse(
    arguments: Sequence[str],
    flags: Flags | None = None,
    warn: Callable[[str], None] = _print_warning,
) -> Options:
    """Return the options that a command line sets.

    flags   the permitted flags; default: the flags of core
    warn    called with the warning for each deprecated flag
    Raises UsageError for an invalid command line, HelpWanted for --help.
    """
    flags = flags or Flags()
    known = {flag.name: flag for flag in flags.rows}
    given: dict[str, Any] = {}
    for name, text in _pairs(arguments, known, flags.hint):
        if name in DEPRECATED:
            old = DEPRECATED[name]
            warn(old.warning.format(value=text))
            if (replaced := old.rewrite(text)) is None:
                continue
            name, text = replaced
        flag = known[name]
        new = flag.form.read(name, text)
        given[flag.field] = flag.form.merge(given.get(flag.field, flag.default), new)
    options = flags.options(given, environment=True)
    check_together(options)
    return options


def _pairs(
    arguments: Sequence[str], flags: Mapping[str, Flag], hint: Callable[[str], str]
) -> Iterator[tuple[str, str]]:
    """Yield (full name of a flag, text of its value) in the order of the command line."""
    names = sorted([*flags, *DEPRECATED, *ALIASES])
    rest = iter(arguments)
    for argument in rest:
        if not argument.startswith("--") or argument == "--":
            if argument == "--" and not (argument := next(rest, "")):
                return
            raise UsageError(f"Unexpected argument: {argument}")
        typed, equals, text = argument[2:].partition("=")
        name = _full_name(typed, argument, names, hint)
        if name in DEPRECATED or flags[name].form.metavar:
            if not equals:
                value = next(rest, None)
                if value is None:
                    raise UsageError(f"option '--{name}' requires an argument")
                text = value
        elif equals:
            raise UsageError(f"option '--{name}' doesn't allow an argument")
        yield name, text


def _full_name(typed: str, argument: str, names: Sequence[str], hint: Callable[[str], str]) -> str:
    if typed == "help":
        raise HelpWanted
    if typed not in names:
        found = [name for name in names if typed and name.startswith(typed)]
        if len(found) > 1:
            possibilities = " ".join(f"'--{name}'" for name in found)
            raise UsageError(f"option '{argument}' is ambiguous; possibilities: {possibilities}")
        if not found:
            near = difflib.get_close_matches(typed, names, 1)
            similar = f"; did you mean '--{near[0]}'?" if near else ""
            raise UsageError(f"unrecognized option '{argument}'{hint(typed) or similar}")
        typed = found[0]
    return ALIASES.get(typed, typed)
