"""Options of the server: the table, the command line, --help.

    command line ─► [Options] ─► everybody

`table` is the place to add a flag.
"""

from core.options.added import AddedFlags, defaults_of
from core.options.checks import check_server, reads_again
from core.options.command_line import HelpWanted, parse
from core.options.secure import harden
from core.options.table import FLAGS, Flag, Options, idle_flags
from core.options.usage import usage
from core.options.values import UsageError

__all__ = [
    "FLAGS",
    "AddedFlags",
    "Flag",
    "HelpWanted",
    "Options",
    "UsageError",
    "check_server",
    "defaults_of",
    "harden",
    "idle_flags",
    "parse",
    "reads_again",
    "usage",
]
