"""The command line: `--name=value`, `--name value` and unique prefixes of names, as in getopt_long."""

from __future__ import annotations

import difflib
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from core.options.checks import check_together
from core.options.deprecated import ALIASES, DEPRECATED
from core.options.flags import Flags
from core.options.table import Options
from core.options.values import BOOL, SWITCH, UsageError, is_bool


class HelpWanted(Exception):
    """Raised if the command line contains --help."""


def _print_warning(text: str) -> None:
    print(text, file=sys.stderr)


def parse(
    arguments: Sequence[str],
    flags: Flags | None = None,
    warn: Callable[[str], None] = _print_warning,
) -> Options:
    """Return the options of a command line; environment variables set some flags that it does not set.

    flags   the permitted flags; default: the flags of core
    warn    called with the warning for each deprecated flag
    Raises UsageError for an invalid command line, HelpWanted for --help.
    """
    flags = flags or Flags()
    known = {flag.name: flag for flag in flags.rows}
    given: dict[str, Any] = {}
    for name, text in pairs(arguments, flags):
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


def pairs(
    arguments: Sequence[str], flags: Flags, words: list[str] | None = None
) -> Iterator[tuple[str, str]]:
    """Yield (full name of a flag, text of its value) in the order of the command line.

    words   gets the arguments that are no flags; None: they are errors
    A boolean without a value is true: the next argument is its value only if it is a boolean text. The text
    of a switch without a value is "". Raises UsageError, and HelpWanted for --help.
    """
    forms = {flag.name: flag.form for flag in flags.rows}
    names = sorted([*forms, *DEPRECATED, *ALIASES])
    rest = deque(arguments)
    while rest:
        argument = rest.popleft()
        if argument == "--" or not argument.startswith("--"):
            found = [*rest] if argument == "--" else [argument]
            if words is None and found:
                raise UsageError(f"Unexpected argument: {found[0]}")
            if argument == "--":
                rest.clear()
            if words is not None:
                words += found
            continue
        typed, equals, text = argument[2:].partition("=")
        name = _full_name(typed, argument, names, flags.hint)
        form = forms.get(name)
        if not equals and form is BOOL:
            text = rest.popleft() if rest and is_bool(rest[0]) else "true"
        elif not equals and form is not SWITCH:
            if not rest:
                raise UsageError(f"option '--{name}' requires an argument")
            text = rest.popleft()
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
            near = difflib.get_close_matches(typed, [*names, "help"], 1)
            similar = f"; did you mean '--{near[0]}'?" if near else ""
            raise UsageError(f"unrecognized option '{argument}'{hint(typed) or similar}")
        typed = found[0]
    return ALIASES.get(typed, typed)
