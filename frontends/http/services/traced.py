"""Submits requests with their trace context, and records HTTP times in their traces."""

from __future__ import annotations

from collections.abc import Awaitable

from core.errors import CoreError
from core.request import InferenceRequest
from core.response import Reply
from core.server import InferenceServer
from core.telemetry.tracing import Trace
from frontends.http.errors import error_answer
from frontends.http.message import HttpRequest, HttpResponse
from frontends.shared.deadline import infer_with_deadline


def submit(server: InferenceServer, call: HttpRequest, request: InferenceRequest) -> Reply:
    """Submit a request with the deadline and the trace context of its HTTP call; return its reply.

    If the request is traced, its trace gets the time in which the body was read. Raises CoreError.
    """
    request.deadline_ns = call.deadline_ns
    tracing = server.tracing
    if tracing.on and tracing.takes_context:
        headers = call.headers
        states = [value for name, value in headers.items() if name.lower() == "tracestate"]
        request.trace = tracing.context(headers.get("traceparent"), states)
    try:
        return infer_with_deadline(server.models.infer, request)
    finally:
        # In the same turn of the loop as the submission. A context remains if the request was refused.
        if isinstance(request.trace, Trace) and call.received is not None:
            request.trace.span("HTTP_RECV", *call.received)


async def traced(reply: Reply, answering: Awaitable[HttpResponse]) -> HttpResponse:
    """Await and return the response to the request of `reply`.

    If the request has a trace, the response gets it and holds it until it is sent, and a CoreError becomes
    a response. Without a trace, a CoreError is raised.
    """
    trace = reply.request.trace
    if not isinstance(trace, Trace):
        return await answering
    trace.hold()
    try:
        answer = await answering
    except CoreError as error:
        answer = error_answer(error)
    except BaseException:
        trace.release()
        raise
    answer.trace = trace
    return answer
