"""Options of the server: flags, the command line, --help.

hook core_add_options ─► [Flags]
command line ─────────► [parse] ─► [Options] ─► every part reads its Section
"""

from core.options.checks import check_server, reads_again
from core.options.command_line import HelpWanted, parse
from core.options.flags import Flags
from core.options.section import Flag, Listener, Section, group
from core.options.table import Options, idle_flags
from core.options.usage import usage
from core.options.values import UsageError

__all__ = [
    "Flag",
    "Flags",
    "HelpWanted",
    "Listener",
    "Options",
    "Section",
    "UsageError",
    "check_server",
    "group",
    "idle_flags",
    "parse",
    "reads_again",
    "usage",
]
