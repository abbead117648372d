"""Commands of the program `core`, found by entry point: group `core.commands`, name → Command or Program.

command line ─► [run_command] ─► Command.arguments ─► Command.run ─► exit status
                              └► Program.main ─► exit status

Only the command that is asked for is imported.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from core.errors import CoreError
from core.plugins.installed import available_commands

if TYPE_CHECKING:
    import argparse


class Command(Protocol):
    """A command; a module with these three names works as well.

    summary   one line for the list of commands and for --help
    """

    summary: str

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments of the command."""

    def run(self, namespace: argparse.Namespace) -> int:
        """Do the work; return the exit status. A CoreError is printed and makes the status 1."""


class Program(Protocol):
    """A command that reads its command line itself; a module with these two names works as well."""

    summary: str

    def main(self, arguments: Sequence[str]) -> int:
        """Do the work, also for --help; return the exit status. A CoreError makes the status 1."""


def run_command(name: str, arguments: Sequence[str]) -> int:
    """Run the command of that name; return its exit status.

    If no distribution brings it, runs `help` for it, which says so. Prints a CoreError, also of its import,
    and returns 1. A Command raises SystemExit for arguments that do not fit, and after --help.
    """
    installed = available_commands()
    if name not in installed:
        name, arguments = "help", ["--", name]
    try:
        command = installed[name].load()
        if hasattr(command, "main"):
            return int(command.main(arguments))
        import argparse  # slow to import; a Program may not need it

        parser = argparse.ArgumentParser(f"core {name}", description=command.summary)
        command.arguments(parser)
        return int(command.run(parser.parse_args(arguments)))
    except CoreError as error:
        print(f"error: {error.message}", file=sys.stderr)
        return 1
