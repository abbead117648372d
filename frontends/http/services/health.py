"""Health of the server and readiness of a model: the status is the result.

A server that is not ready says in the body what is loading.
"""

from __future__ import annotations

import orjson

from core.errors import CoreError, Kind, Loading
from core.server import InferenceServer
from frontends.http.errors import refusal
from frontends.http.message import JSON_HEADERS, HttpRequest, HttpResponse
from frontends.http.options import HttpOptions
from frontends.shared.context import context_of


async def live(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return 200 while the server can answer."""
    return _as_status(server.control.health.live())


async def ready(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return 200 when the server can serve; 400 before, with what is loading."""
    if await server.control.health.ready():
        return HttpResponse()
    loading = {"ready": False, "loading": _loading(server)}
    return HttpResponse(400, JSON_HEADERS, orjson.dumps(loading))


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


def _loading(server: InferenceServer) -> list[dict[str, str]]:
    """Return the step of each version that is loading, and for how long.

    Health is often open to callers who may not list models: they get no names.
    """
    restricted = HttpOptions.of(server.options).http_restricted_api
    has_names = context_of(server).policy is None and "model-repository" not in restricted
    shown = ("name", "namespace", "version", "reason") if has_names else ("reason",)
    try:
        entries = server.manager.index()
    except CoreError:  # of a repository that cannot be read now
        return []
    loading = [each for each in entries if each.get("state") == "LOADING"]
    return [{key: each[key] for key in shown if key in each} for each in loading]


def _as_status(healthy: bool) -> HttpResponse:
    return HttpResponse(200 if healthy else 400)
