"""Commands of `python -m core`, found by entry point: group `core.commands`, name → a Command.

command line ─► [run_command] ─► Command.arguments ─► Command.run ─► exit status

Only the command that is asked for is imported.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Sequence
from typing import Protocol

from core.errors import CoreError
from core.plugins.installed import available_commands


class Command(Protocol):
    """A command; a module with these three names works as well.

    summary   one line for the list of commands and for --help
    """

    summary: str

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments of the command."""

    def run(self, namespace: argparse.Namespace) -> int:
        """Do the work; return the exit status. A CoreError is printed and makes the status 1."""


def run_command(name: str, arguments: Sequence[str]) -> int:
    """Run the command of that name; return its exit status.

    Prints an error and returns 2 if no distribution brings it, 1 if it cannot be imported.
    Raises SystemExit for arguments that do not fit, and after --help.
    """
    installed = available_commands()
    if name not in installed:
        near = difflib.get_close_matches(name, installed, 1)
        meant = f"; did you mean '{near[0]}'?" if near else ""
        names = ", ".join(installed) or "none"
        print(f"error: no command named '{name}'{meant} (installed: {names})", file=sys.stderr)
        return 2
    try:
        command: Command = installed[name].load()
        parser = argparse.ArgumentParser(f"python -m core {name}", description=command.summary)
        command.arguments(parser)
        return command.run(parser.parse_args(arguments))
    except CoreError as error:
        print(f"error: {error.message}", file=sys.stderr)
        return 1
