"""Helpers of services for traced requests: they read the client's context and record HTTP times."""

from __future__ import annotations

from core.request import InferenceRequest
from core.server import InferenceServer
from core.telemetry.tracing import Trace
from frontends.http.message import HttpRequest


def bring_context(server: InferenceServer, call: HttpRequest, request: InferenceRequest) -> None:
    """Give the request the trace context from its headers, if that makes it traced."""
    tracing = server.tracing
    if tracing.on and tracing.takes_context:
        headers = call.headers
        states = [value for name, value in headers.items() if name.lower() == "tracestate"]
        request.trace = tracing.context(headers.get("traceparent"), states)


def received(request: InferenceRequest, call: HttpRequest) -> Trace | None:
    """Return the trace of a request after submission, with the times of receiving it; None for none.

    Call it in the same turn of the loop as the submission.
    """
    trace = request.trace
    if not isinstance(trace, Trace):  # a context remains if the request was refused before
        return None
    if call.received is not None:
        trace.span("HTTP_RECV", *call.received)
    return trace
