"""`core help` prints a line for each command; `core help NAME` prints a command's help, or why it is missing.

`core` without arguments and `core --help` do the same as `core help`. `core NAME` does the same as
`core help NAME` if no command has that name.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import sys
from importlib import metadata

from core import plugins
from core.errors import CoreError
from core.plugins.commands import run_command
from core.plugins.extras import is_installed

summary = "list the commands"

_COMMANDS = re.compile(r"""core\[([\w,-]+)\].*\bextra == ["']commands["']""")
UNKNOWN = 2
"""Exit status for a command that is not installed."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("command", nargs="?", metavar="COMMAND", help="show its arguments")


def run(namespace: argparse.Namespace) -> int:
    """Print the list of commands and return 0, or print the help of the command that is named.

    A command ends with SystemExit(0) after its help, but a Program such as `serve` returns its status; 1 is
    returned if the command cannot be imported. For a name that is no installed command, print the reason to
    stderr and return UNKNOWN.
    """
    name = namespace.command
    if name is None:
        _list()
        return 0
    if name in plugins.available_commands():
        return run_command(name, ["--help"])
    print(f"error: {_unknown(name)}", file=sys.stderr)
    return UNKNOWN


def missing_commands() -> list[str]:
    """Return the names of the commands of which a required distribution is not installed.

    The extra "commands" of core requires an extra for each command, of the same name. None is returned if
    core itself is not installed.
    """
    try:
        requirements = metadata.requires("core") or []
    except metadata.PackageNotFoundError:
        return []
    names = next(filter(None, map(_COMMANDS.match, requirements)), None)
    extras = plugins.extras()
    return [
        name
        for name in (names[1].split(",") if names else [])
        if not all(map(is_installed, extras.get(name, ())))
    ]


def _list() -> None:
    """Print a line for each installed command: its summary, or why it cannot be imported.

    Print also how to get the commands that are not installed, if there are any.
    """
    rows = [(name, _summary(plugin)) for name, plugin in plugins.available_commands().items()]
    width = max(len(name) for name, _ in rows)
    print("usage: core COMMAND …\n")
    print("\n".join(f"  {name:{width}}  {text}" for name, text in rows))
    print("\n`core COMMAND --help` shows the arguments of a command.")
    if missing_commands():
        print(f"Some commands are not installed{plugins.install_hint('commands')}")


def _summary(plugin: plugins.Plugin) -> str:
    try:
        return str(plugin.load().summary)
    except CoreError as error:
        return error.message


def _unknown(name: str) -> str:
    """Return the error text for a command that is not installed.

    It says how to install the command, or how to serve the path `name`, or which name is similar, if any.
    """
    installed, missing = plugins.available_commands(), missing_commands()
    if name in missing:
        return f"the command '{name}' is not installed{plugins.install_hint(name)}"
    if os.path.exists(name):
        return f"no command named '{name}'; to serve it: core serve {name}"
    near = difflib.get_close_matches(name, [*installed, *missing], 1)
    meant = f"; did you mean '{near[0]}'?" if near else ""
    return f"no command named '{name}'{meant} (installed: {', '.join(installed)})"
