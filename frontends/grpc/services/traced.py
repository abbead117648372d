"""Tracing in gRPC's services: read the trace context of a client, record the times of reading and sending."""

from __future__ import annotations

from collections.abc import Callable

from core.errors import CoreError
from core.request import InferenceRequest
from core.response import InferenceResponse
from core.telemetry.tracing import Trace, Tracer
from frontends.grpc.call import GrpcCall

Arrived = Callable[[InferenceResponse | CoreError | None, bool], None]


def bring_context(tracing: Tracer, call: GrpcCall, request: InferenceRequest) -> None:
    """Set `request.trace` to the trace context in the call's metadata.

    Do nothing if nothing is traced, if the tracer takes no context of clients, or if the metadata have no
    `traceparent`.
    """
    if not (tracing.on and tracing.takes_context):
        return
    parent = call.value("traceparent")
    if isinstance(parent, str):
        states = [
            value
            for name, value in call.metadata
            if name == "tracestate" and isinstance(value, str)
        ]
        request.trace = tracing.context(parent, states)


def received(request: InferenceRequest, start_ns: int, end_ns: int) -> Trace | None:
    """Record the times of reading a request in its trace and return the trace; None if it is not traced.

    start_ns, end_ns   time.monotonic_ns() before and after the request was read
    Call it in the same iteration of the event loop in which the server accepted the request.
    """
    trace = request.trace
    if not isinstance(
        trace, Trace
    ):  # None: not traced; a SpanContext: refused before it was traced
        return None
    trace.span("GRPC_WAITREAD", start_ns, end_ns)
    return trace


class Sending:
    """Callback of a reply on a stream: passes each item to `arrived`, and holds the trace until the last.

    For each response or error, the trace records when `arrived` was called and when it returned.
    """

    def __init__(self, trace: Trace, arrived: Arrived):
        self._trace = trace
        self._arrived = arrived
        trace.hold()

    def __call__(self, item: InferenceResponse | CoreError | None, final: bool) -> None:
        if item is not None:
            self._trace.stamp("GRPC_SEND_START")
        self._arrived(item, final)
        if item is not None:
            self._trace.stamp("GRPC_SEND_END")
        if final:
            self._trace.release()
