"""The flags of the frontends, for the command line.

Imports neither aiohttp nor grpc.
"""

from __future__ import annotations

from core.hookspecs import hookimpl
from core.options import Flags
from frontends.grpc.options import GrpcOptions
from frontends.http.options import HttpOptions
from frontends.memory.options import MemoryOptions
from frontends.metrics.options import MetricsOptions
from frontends.shared.options import SharedOptions
from frontends.terminal.options import TerminalOptions

_SECTIONS = (
    HttpOptions,
    GrpcOptions,
    MetricsOptions,
    MemoryOptions,
    SharedOptions,
    TerminalOptions,
)


@hookimpl(tryfirst=True)
def core_add_options(parser: Flags) -> None:
    """Register the flags of the frontends, before those of plugins."""
    for section in _SECTIONS:
        parser.add_section(section)
