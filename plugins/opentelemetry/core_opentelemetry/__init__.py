"""Traces as OpenTelemetry spans: the exporter of --trace-config=mode=opentelemetry.

    Trace ─► [spans] ─► Span, Span … ─► [exporter] ─► [collector] ─► OTLP over HTTP

The packages of OpenTelemetry are imported only when a server uses the mode.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import core

if TYPE_CHECKING:
    from core.telemetry.tracing import TraceExporter

MODE = "opentelemetry"


@core.hookimpl
def core_open_trace_exporter(
    mode: str, settings: Sequence[tuple[str, str]]
) -> TraceExporter | None:
    """Return a SpanExporter for mode opentelemetry. Raises CoreError(INVALID) for an invalid setting."""
    if mode != MODE:
        return None
    from core_opentelemetry.collector import Collector
    from core_opentelemetry.exporter import SpanExporter
    from core_opentelemetry.settings import ExportSettings

    found = ExportSettings.of(settings)
    return SpanExporter(found, Collector(found))
