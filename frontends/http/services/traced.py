"""Submits requests with their trace context, and records HTTP times in their traces."""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial
from typing import TYPE_CHECKING

from core.errors import CoreError
from core.request import InferenceRequest
from core.response import Reply
from core.server import InferenceServer
from core.telemetry.tracing import Trace
from frontends.http.errors import error_answer
from frontends.http.message import HttpRequest, HttpResponse
from frontends.shared.deadline import infer_with_deadline

if TYPE_CHECKING:
    from core.control.models import Models
    from frontends.shared.usage_meter import UsageMeter


def submit(
    server: InferenceServer,
    call: HttpRequest,
    request: InferenceRequest,
    *,
    counts_prompt: bool = True,
) -> Reply:
    """Submit a request with the deadline and the trace context of its HTTP call; return its reply.

    If the request is traced, its trace gets the time in which the body was read. Raises CoreError.
    counts_prompt   False if another request of the call counts the tokens of the same prompt
    """
    request.deadline_ns = call.deadline_ns
    infer = server.models.infer
    if call.meter is not None:
        infer = partial(_metered, server.models, call.meter, counts_prompt)
    tracing = server.tracing
    if not tracing.on:
        return infer_with_deadline(infer, request)
    if tracing.takes_context:
        headers = call.headers
        states = [value for name, value in headers.items() if name.lower() == "tracestate"]
        request.trace = tracing.context(headers.get("traceparent"), states)
    try:
        return infer_with_deadline(infer, request)
    finally:
        # In the same turn of the loop as the submission. A context remains if the request was refused.
        if isinstance(request.trace, Trace) and call.received is not None:
            request.trace.span("HTTP_RECV", *call.received)


def _metered(
    models: Models, meter: UsageMeter, counts_prompt: bool, request: InferenceRequest
) -> Reply:
    endpoint = models.endpoint(request.model_name, request.model_version)
    return meter.ask(models.ask, endpoint, request, counts_prompt=counts_prompt)


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
