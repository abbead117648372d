"""The program `core`: run a command. `python -m core` is the same program.

    core COMMAND …   run a command; `core COMMAND --help` shows its arguments
    core, -h         like `core help`: list the commands
    core --version   like `core version`

Entry points name the commands (core/plugins/commands.py).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from core.plugins.commands import run_command

INTERRUPTED = 130
"""Exit status of a command that Ctrl-C ends, as of a shell."""
CLOSED = 141
"""Exit status of a command whose output the reader has closed, as of a shell."""

_COMMANDS = {"-h": "help", "--help": "help", "--version": "version"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command of the arguments; return the exit status. Raises SystemExit as `run_command` does.

    arguments   of the command line, without the program; None for those of this process
    """
    name, *rest = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    try:
        status = run_command(_COMMANDS.get(name, name), rest)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # such as `core plugins | head -1`
        # The interpreter flushes again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED
    return status


if __name__ == "__main__":
    sys.exit(main())
