"""ModelInfer."""

from __future__ import annotations

import time

from core.errors import unsupported
from core.response import Reply
from core.server import Server
from core.telemetry.tracing import Trace
from frontends.grpc.call import Call
from frontends.grpc.intake import Intake
from frontends.grpc.protocol import render
from frontends.grpc.protocol.parse import read
from frontends.grpc.services.inbound import Inbound


class InferService:
    """One request, one response. Loop thread only."""

    def __init__(self, server: Server, inbound: Inbound, intake: Intake):
        self._server = server
        self._inbound = inbound
        self._intake = intake

    async def model_infer(self, data: bytes, call: Call) -> bytes:
        self._intake.enter()
        start_ns = time.monotonic_ns() if self._server.tracing.on else 0
        try:
            message, raw_contents = read(data)
            version, signature = self._inbound.target(message)
            if signature.decoupled:
                raise unsupported(
                    "ModelInfer RPC doesn't support models with decoupled transaction policy"
                )
            request = self._inbound.request(message, raw_contents, version, signature, call)
            read_ns = time.monotonic_ns() if start_ns else 0
            reply = self._server.infer(request)
            call.on_cancel(reply.cancel)
            if request.trace is not None:
                request.trace.span("GRPC_WAITREAD", start_ns, read_ns)
                return await _traced(request.trace, reply)
            return render.response(await reply, request)
        finally:
            self._intake.leave()


async def _traced(trace: Trace, reply: Reply) -> bytes:
    """The response; the trace learns when it was made for sending. The sending itself is the engine's."""
    trace.hold()
    try:
        response = await reply
        trace.stamp("GRPC_SEND_START")
        data = render.response(response, reply.request)
        trace.stamp("GRPC_SEND_END")
        return data
    finally:
        trace.release()
