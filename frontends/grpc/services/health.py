"""ServerLive, ServerReady, ModelReady, and Check of the health protocol."""

from __future__ import annotations

from core.config.model_version import parse_version
from core.errors import CoreError
from core.server import InferenceServer
from frontends.grpc.call import GrpcCall
from frontends.grpc.protocol.decode import decode
from frontends.grpc.protocol.health_messages import HealthCheckRequest, HealthCheckResponse
from frontends.grpc.protocol.messages import (
    ModelReadyRequest,
    ModelReadyResponse,
    ServerLiveRequest,
    ServerLiveResponse,
    ServerReadyRequest,
    ServerReadyResponse,
)


class HealthService:
    """The health methods. Call from the event loop only."""

    def __init__(self, server: InferenceServer):
        self._server = server

    async def server_live(self, data: bytes, call: GrpcCall) -> bytes:
        decode(ServerLiveRequest, data)
        return ServerLiveResponse(live=self._server.control.health.live()).SerializeToString()

    async def server_ready(self, data: bytes, call: GrpcCall) -> bytes:
        decode(ServerReadyRequest, data)
        return ServerReadyResponse(
            ready=await self._server.control.health.ready()
        ).SerializeToString()

    async def model_ready(self, data: bytes, call: GrpcCall) -> bytes:
        """Return whether a version can serve; an unknown one is not ready, without an error."""
        request = decode(ModelReadyRequest, data)
        version = parse_version(request.version)
        try:
            ready = await self._server.control.health.model_ready(request.name, version)
        except CoreError:
            # Clients poll this method until a model is ready: an error would end their loop.
            ready = False
        return ModelReadyResponse(ready=ready).SerializeToString()

    async def check(self, data: bytes, call: GrpcCall) -> bytes:
        """Return the readiness of the server, whatever service the request names."""
        decode(HealthCheckRequest, data)
        try:
            ready = await self._server.control.health.ready()
        except CoreError:
            ready = False
        status = HealthCheckResponse.SERVING if ready else HealthCheckResponse.NOT_SERVING
        return HealthCheckResponse(status=status).SerializeToString()
