"""Traces of a sample of all requests: the times of each request's steps, and its tensors.

                                  ┌─► TraceFiles
Models.infer ─► [Tracer] ─► Trace ┤
                                  └─► TraceExporter of a plugin

The pipeline and the frontends add their times to `request.trace`, which is None for a request that is not
traced.
"""

from core.telemetry.tracing.exporter import TraceExporter
from core.telemetry.tracing.settings import TraceSettings
from core.telemetry.tracing.trace import Trace
from core.telemetry.tracing.tracer import Tracer

__all__ = ["Trace", "TraceExporter", "TraceSettings", "Tracer"]
