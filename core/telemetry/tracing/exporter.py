"""TraceExporter: the receiver of finished traces in one mode of --trace-config.

Tracer ─► Trace ─► [TraceExporter] ─► spans, a file, a service.  Mode triton writes trace files instead.
"""

from __future__ import annotations

from collections.abc import Mapping

from core.telemetry.tracing.trace import Trace


class TraceExporter:
    """Base class of exporters. All calls come from the event loop and must not block.

    takes_context  whether traces are W3C spans: unless tracing is off, each request with a `traceparent` is
                   traced, and a trace has `root`, `remote` and `context`
    takes_tensors  whether traces keep tensors at level TENSORS
    shown          settings of the exporter by name, which clients read with the trace extension
    """

    takes_context: bool = False
    takes_tensors: bool = False
    shown: Mapping[str, str] = {}

    def export(self, trace: Trace) -> None:
        """Take a finished trace with its children. The trace does not change; any thread may read it."""
        raise NotImplementedError

    async def close(self, timeout_s: float) -> None:
        """Write or send the remaining traces within `timeout_s` (1 to 5 s); a second call must do nothing."""
