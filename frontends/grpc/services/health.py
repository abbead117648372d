"""ServerLive, ServerReady, ModelReady, and Check of the health protocol."""

from __future__ import annotations

from core.config.model_version import parse_version
from core.errors import CoreError
from core.server import InferenceServer
from frontends.grpc.protocol import messages
from frontends.grpc.protocol.health_messages import HealthCheckRequest, HealthCheckResponse
from frontends.shared.readiness import Readiness


async def server_live(
    server: InferenceServer, request: messages.ServerLiveRequest
) -> messages.ServerLiveResponse:
    return messages.ServerLiveResponse(live=server.control.health.live())


async def server_ready(
    server: InferenceServer, request: messages.ServerReadyRequest
) -> messages.ServerReadyResponse:
    return messages.ServerReadyResponse(ready=await _ready(server))


async def model_ready(
    server: InferenceServer, request: messages.ModelReadyRequest
) -> messages.ModelReadyResponse:
    """Return whether a version can serve. An unknown model or version is not ready, which is no error.

    Raises CoreError for a version that is no number from 0 to 2**63 - 1.
    """
    version = parse_version(request.version)
    try:
        ready = await server.control.health.model_ready(request.name, version)
    except CoreError:
        # Clients poll this method until a model is ready: an error would end their loop.
        ready = False
    return messages.ModelReadyResponse(ready=ready)


async def check(server: InferenceServer, request: HealthCheckRequest) -> HealthCheckResponse:
    """Return SERVING if the server is ready, else NOT_SERVING, whatever service the request names."""
    try:
        ready = await _ready(server)
    except CoreError:
        ready = False
    status = HealthCheckResponse.SERVING if ready else HealthCheckResponse.NOT_SERVING
    return HealthCheckResponse(status=status)


async def _ready(server: InferenceServer) -> bool:
    """Return whether the server can serve and no plugin objects to more requests.

    Raises CoreError(UNAVAILABLE) while the server exits.
    """
    return await server.control.health.ready() and not await Readiness.of(server).objection()
