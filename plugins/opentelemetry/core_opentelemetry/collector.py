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

SCOPE = "triton-server"  # as Triton calls what makes its spans

_SAMPLED = trace.TraceFlags(trace.TraceFlags.SAMPLED)


class Collector:
    """A Destination of spans, which documents the threads."""

    def __init__(self, settings: ExportSettings) -> None:
        """Raises CoreError(INVALID) for a setting that OpenTelemetry refuses."""
        # Workers have one configuration and yet are several.
        self._resource = Resource.create({"process.pid": os.getpid(), **settings.resource})
        self._scope = InstrumentationScope(SCOPE, core.__version__)
        try:
            self._exporter = trace_exporter.OTLPSpanExporter(endpoint=settings.url or None)
        except Exception as error:  # of a variable of the environment, mostly
            raise invalid(f"--trace-config=mode=opentelemetry: {error}") from error
        self.where = settings.url or str(getattr(self._exporter, "_endpoint", "its collector"))
        self._complaints = _Complaints()
        logging.getLogger(trace_exporter.__name__).addFilter(self._complaints)

    def send(self, spans: Sequence[Span]) -> str | None:
        """See Destination."""
        readable = [self._readable(span) for span in spans]
        with self._complaints as complaints:
            result = self._exporter.export(readable)
        return (
            None if result is SpanExportResult.SUCCESS else complaints.text or "no reason was told"
        )

    def stop(self) -> None:
        """See Destination."""
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
    """Takes what OpenTelemetry's exporter logs for each batch out of the log: SpanExporter logs it once.

    It filters the records of the thread that entered it. Other users of that exporter log as before.
    """

    def __init__(self) -> None:
        super().__init__()
        self._thread = 0
        self.text = ""  # the first record: the others say that it tries again

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
