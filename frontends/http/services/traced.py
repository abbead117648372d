"""What services do for requests that are traced: the context of the client in, the times of HTTP."""

from __future__ import annotations

from core.request import InferenceRequest
from core.server import InferenceServer
from core.telemetry.tracing import Trace
from frontends.http.message import HttpRequest


def bring_context(server: InferenceServer, call: HttpRequest, request: InferenceRequest) -> None:
    """Let the request tell the server the context in its headers, if that makes it traced."""
    tracing = server.tracing
    if tracing.on and tracing.takes_context:
        headers = call.headers
        states = [value for name, value in headers.items() if name.lower() == "tracestate"]
        request.trace = tracing.context(headers.get("traceparent"), states)


def received(request: InferenceRequest, call: HttpRequest) -> Trace | None:
    """The trace of a request that the server has got, with the times of receiving it; None for none.

    In the turn of the loop in which the server got it.
    """
    trace = request.trace
    if not isinstance(trace, Trace):  # a context stays where the request was refused before
        return None
    if call.received is not None:
        trace.span("HTTP_RECV", *call.received)
    return trace
