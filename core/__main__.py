"""The program `core`: run a command, or list the commands. `python -m core` is the same program.

    core             list the commands, like --help and -h
    core --version   like `core version`
    core COMMAND …   run a command; `core COMMAND --help` shows its arguments

Entry points name the commands (core/plugins/commands.py).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from core.plugins.commands import command_list, run_command

INTERRUPTED = 130
"""Exit status of a command that Ctrl-C ends, as of a shell."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command of the arguments, or list the commands; return the exit status.

    arguments   of the command line, without the program; None for those of this process
    """
    name, *rest = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    if name in ("-h", "--help"):
        print(command_list())
        return 0
    try:
        return run_command("version" if name == "--version" else name, rest)
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
