"""Health of the server and readiness of a model: the status is the result, the body is empty."""

from __future__ import annotations

from core.errors import CoreError, Kind, Loading
from core.server import InferenceServer
from frontends.http.errors import refusal
from frontends.http.message import HttpRequest, HttpResponse


async def live(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return 200 while the server can answer."""
    return _as_status(server.control.health.live())


async def ready(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return 200 when the server can serve, 400 before."""
    return _as_status(await server.control.health.ready())


async def model_ready(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return 200 if that version, or the newest, can serve; 503 while it loads; 400 if it cannot serve or is
    unknown."""
    try:
        serves = await server.control.health.model_ready(call.model, call.version)
    except CoreError as error:
        if isinstance(error, Loading) or error.kind not in (Kind.NOT_FOUND, Kind.UNAVAILABLE):
            raise
        serves = False
    return HttpResponse() if serves else refusal(400, "Model version not ready")


def _as_status(healthy: bool) -> HttpResponse:
    return HttpResponse(200 if healthy else 400)
