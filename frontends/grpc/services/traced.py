"""What services do for requests that are traced: the context of the client in, the times of gRPC."""

from __future__ import annotations

from collections.abc import Callable

from core.errors import CoreError
from core.request import InferenceRequest
from core.response import InferenceResponse
from core.telemetry.tracing import Trace, Tracer
from frontends.grpc.call import GrpcCall

Arrived = Callable[[InferenceResponse | CoreError | None, bool], None]


def bring_context(tracing: Tracer, call: GrpcCall, request: InferenceRequest) -> None:
    """Let the request tell the server the context in its metadata, if that makes it traced."""
    if not tracing.takes_context:
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
    """The trace of a request that the server has got, with the times of reading it; None for none.

    In the turn of the loop in which the server got it.
    """
    trace = request.trace
    if not isinstance(trace, Trace):  # a context stays where the request was refused before
        return None
    trace.span("GRPC_WAITREAD", start_ns, end_ns)
    return trace


class Sending:
    """Hands answers of a stream to `arrived`; the trace learns when. Holds it until the last."""

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
