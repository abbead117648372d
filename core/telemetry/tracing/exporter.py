"""TraceExporter: what takes the finished traces of a server, in one mode of --trace-config.

Tracer ─► Trace ─► [TraceExporter] ─► spans, a file, a service.  Mode triton writes trace files instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core import plugins
from core.errors import internal, invalid
from core.telemetry.tracing.settings import TRITON
from core.telemetry.tracing.trace import Trace


class TraceExporter:
    """Base class of exporters. All calls come from the event loop and must not block.

    takes_context  whether traces are W3C spans: a request with a `traceparent` is always traced, and a trace
                   has `root`, `remote` and `context`
    takes_tensors  whether traces keep tensors at level TENSORS
    shown          settings of the exporter by name, which clients read with the trace extension
    """

    takes_context: bool = False
    takes_tensors: bool = False
    shown: Mapping[str, str] = {}

    def export(self, trace: Trace) -> None:
        """Take a finished trace with its children. Another thread may read it, and nothing changes it."""
        raise NotImplementedError

    async def close(self, timeout_s: float) -> None:
        """Write or send what is left, in at most `timeout_s` (1 to 5 s); a second call must do nothing."""


def open_exporter(
    mode: str, config: Mapping[str, Sequence[tuple[str, str]]]
) -> TraceExporter | None:
    """Return the exporter of a mode; None for trace files, which mode triton without a plugin writes.

    config   mode → its settings, "" → settings of all modes
    Raises CoreError(INVALID) for a mode that no installed plugin has, and what a plugin raises.
    """
    found = plugins.ask("core_open_trace_exporter", mode=mode, settings=tuple(config.get(mode, ())))
    opened = {"", TRITON} if found is None else {"", TRITON, mode}
    for each in sorted({mode, *config} - opened):
        hint = plugins.install_hint(each)
        if not hint:
            raise invalid(
                f"--trace-config mode: invalid value for trace mode option: {each}. "
                f'Available options are "{TRITON}" and the modes of installed plugins'
            )
        if each == mode:
            raise invalid(f"--trace-config=mode={mode}: no installed plugin has this mode{hint}")
    if found is not None and not isinstance(found, TraceExporter):
        raise internal(
            f"the plugin of trace mode '{mode}' made a {type(found).__name__}, not a "
            "core.telemetry.tracing.TraceExporter"
        )
    return found
