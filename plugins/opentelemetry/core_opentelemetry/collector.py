"""Collector: sends spans by OTLP over HTTP, with the exporter of OpenTelemetry's SDK.

SpanExporter ─► [Collector] ─► OTLPSpanExporter ─► HTTP
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Sequence

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http import trace_exporter
from opentelemetry.sdk import trace as sdk
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

import core
from core.errors import invalid
from core.telemetry.tracing.context import SpanContext
from core_opentelemetry.settings import ExportSettings
from core_opentelemetry.spans import Span

SCOPE = "triton-server"  # Triton's name for the instrumentation scope

_SAMPLED = trace.TraceFlags(trace.TraceFlags.SAMPLED)


class Collector:
    """Sends spans to a collector. One thread calls `send`, one call at a time; any thread may call `stop`.

    where   URL of the collector, for the log
    """

    def __init__(self, settings: ExportSettings) -> None:
        """Create the SDK's exporter. Raises CoreError(INVALID) for a setting that OpenTelemetry refuses."""
        # Distinguishes the workers, which have the same configuration.
        self._resource = Resource.create({"process.pid": os.getpid(), **settings.resource})
        self._scope = InstrumentationScope(SCOPE, core.__version__)
        try:
            self._exporter = trace_exporter.OTLPSpanExporter(endpoint=settings.url or None)
        except Exception as error:  # usually for an environment variable
            raise invalid(f"--trace-config=mode=opentelemetry: {error}") from error
        self.where = settings.url or str(getattr(self._exporter, "_endpoint", "its collector"))
        self._complaints = _Complaints()
        logging.getLogger(trace_exporter.__name__).addFilter(self._complaints)

    def send(self, spans: Sequence[Span]) -> str | None:
        """Send spans, and wait for the collector's response, which may take seconds.

        Return None if it has accepted them, else the reason of the failure as text.
        """
        readable = [self._readable(span) for span in spans]
        with self._complaints as complaints:
            result = self._exporter.export(readable)
        return (
            None if result is SpanExportResult.SUCCESS else complaints.text or "no reason was told"
        )

    def stop(self) -> None:
        """Close the exporter: a `send` that waits to retry ends, and later ones fail."""
        self._exporter.shutdown()  # type: ignore[no-untyped-call]

    def _readable(self, span: Span) -> sdk.ReadableSpan:
        return sdk.ReadableSpan(
            name=span.name,
            context=_context(span.context, False),
            parent=span.parent and _context(span.parent, span.from_client),
            resource=self._resource,
            attributes=span.attributes,
            events=[sdk.Event(name, timestamp=at_ns) for name, at_ns in span.events],
            kind=trace.SpanKind.SERVER,
            instrumentation_scope=self._scope,
            status=trace.Status(trace.StatusCode.ERROR, span.error)
            if span.error
            else trace.Status(),
            start_time=span.start_ns,
            end_time=span.end_ns,
        )


def _context(context: SpanContext, is_remote: bool) -> trace.SpanContext:
    state = trace.TraceState.from_header([context.state]) if context.state else None
    return trace.SpanContext(context.trace_id, context.span_id, is_remote, _SAMPLED, state)


class _Complaints(logging.Filter):
    """Filter that removes log records of OpenTelemetry's exporter, since SpanExporter logs failures itself.

    While it is entered, it removes the records of the thread that has entered it. Those of other threads,
    which use that exporter for other purposes, are logged as before.
    text   first record removed since it was entered; "" for none
    """

    def __init__(self) -> None:
        super().__init__()
        self._thread = 0
        self.text = ""  # the first record; the others only announce retries

    def __enter__(self) -> _Complaints:
        self._thread, self.text = threading.get_ident(), ""
        return self

    def __exit__(self, *_: object) -> None:
        self._thread = 0

    def filter(self, record: logging.LogRecord) -> bool:
        if record.thread != self._thread:
            return True
        self.text = self.text or record.getMessage()
        return False
