"""ModelInfer."""

from __future__ import annotations

from core.errors import unsupported
from core.server import Server
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
        try:
            message, raw_contents = read(data)
            version, signature = self._inbound.target(message)
            if signature.decoupled:
                raise unsupported(
                    "ModelInfer RPC doesn't support models with decoupled transaction policy"
                )
            request = self._inbound.request(message, raw_contents, version, signature, call)
            reply = self._server.infer(request)
            call.on_cancel(reply.cancel)
            return render.response(await reply, request)
        finally:
            self._intake.leave()
