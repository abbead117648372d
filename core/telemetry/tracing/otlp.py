"""Collector: sends spans by OTLP over HTTP, with the exporter of OpenTelemetry's SDK.

SpanExporter ─► [Collector] ─► OTLPSpanExporter ─► HTTP.  Nothing of OpenTelemetry is imported before
mode opentelemetry asks for it: `pip install core[opentelemetry]`.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import core
from core.errors import invalid
from core.telemetry.tracing.context import SpanContext
from core.telemetry.tracing.export_settings import ExportSettings
from core.telemetry.tracing.spans import Span

SCOPE = "triton-server"  # as Triton calls what makes its spans

Send = Callable[[Sequence[Any]], Any]


class Collector:
    """A Destination of spans. See there for threads."""

    def __init__(self, settings: ExportSettings) -> None:
        """Raises CoreError(INVALID) without the packages of OpenTelemetry, or for a setting it refuses."""
        try:
            from opentelemetry import trace
            from opentelemetry.exporter.otlp.proto.http import trace_exporter
            from opentelemetry.sdk import trace as sdk
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace.export import SpanExportResult
            from opentelemetry.sdk.util.instrumentation import InstrumentationScope
        except ImportError as error:
            raise invalid(
                "--trace-config=mode=opentelemetry needs the packages opentelemetry-sdk and "
                f"opentelemetry-exporter-otlp-proto-http ({error}); try: "
                "pip install core[opentelemetry]"
            ) from error
        self._trace = trace
        self._sdk: ModuleType = sdk
        # Workers have one configuration and yet are several.
        self._resource = Resource.create({"process.pid": os.getpid(), **settings.resource})
        self._scope = InstrumentationScope(SCOPE, core.__version__)
        self._sampled = trace.TraceFlags(trace.TraceFlags.SAMPLED)
        self._success = SpanExportResult.SUCCESS
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
        return None if result is self._success else complaints.text or "no reason was told"

    def stop(self) -> None:
        """See Destination."""
        self._exporter.shutdown()  # type: ignore[no-untyped-call]

    def _readable(self, span: Span) -> Any:
        trace, sdk = self._trace, self._sdk
        return sdk.ReadableSpan(
            name=span.name,
            context=self._context(span.context, False),
            parent=span.parent and self._context(span.parent, span.from_client),
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

    def _context(self, context: SpanContext, is_remote: bool) -> Any:
        trace = self._trace
        state = trace.TraceState.from_header([context.state]) if context.state else None
        return trace.SpanContext(context.trace_id, context.span_id, is_remote, self._sampled, state)


class _Complaints(logging.Filter):
    """Keeps what OpenTelemetry's exporter would log for each batch: the log is told once.

    While it is entered, of the thread that did; others who use that exporter log as ever.
    """

    def __init__(self) -> None:
        super().__init__()
        self._thread = 0
        self.text = ""  # the first of them: others tell that it is tried again

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
