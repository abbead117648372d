"""The console: a page on the HTTP port that shows the models of a server, and a form to try each of them.

    statistics of the models ─► [rows] ─► every process ─► [merging] ─► [Hub] ─► events ─► the page
    traces of requests ─► [TraceRing] ─┐
    warnings and errors ─► [Notices] ──┴─► read when the page asks

Nothing here runs for a request, except that a request that is traced anyway is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import core
from core_console.options import ConsoleOptions, is_on

if TYPE_CHECKING:
    from core.options import Flags, Options
    from core.server import InferenceServer
    from core.telemetry.tracing import TraceExporter

MODE = "console"
_FILES = "triton"  # the default mode, which writes nothing without a file


@core.hookimpl
def core_add_options(parser: Flags) -> None:
    """Register the flag."""
    parser.add_section(ConsoleOptions)


@core.hookimpl(trylast=True)
def core_open_trace_exporter(
    mode: str, settings: Sequence[tuple[str, str]], options: Options
) -> TraceExporter | None:
    """Return the ring of recent traces for mode console; also for mode triton without any setting, if the
    console is on. Else None: another plugin, or core, exports the traces.

    Raises CoreError(INVALID) for an unknown setting of mode console.
    """
    if mode != MODE and (mode != _FILES or settings or not is_on(options)):
        return None
    from core_console.traces import TraceRing

    return TraceRing.opened(options, settings if mode == MODE else ())


@core.hookimpl
def core_server_starting(server: InferenceServer) -> None:
    """Add the routes and the control operations, if the options turn the console on."""
    if not is_on(server.options):
        return
    # Imported here: a command line needs no server library.
    from core_console.routes import add_to

    add_to(server)
