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
from frontends.shared.readiness import Readiness

_MOST_LOADING = 20  # versions that a response lists


async def live(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return status 200 with an empty body. Raises CoreError(UNAVAILABLE) while the server exits."""
    return _as_status(server.control.health.live())


async def ready(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return status 200 if the server is ready, else 400 with a JSON body that says what is loading.

    503 if a plugin has a reason against more requests (frontends/shared/readiness.py). Raises
    CoreError(UNAVAILABLE) while the server exits.
    """
    if await server.control.health.ready():
        reason = await Readiness.of(server).objection()
        return refusal(503, reason) if reason else HttpResponse()
    loading = {"ready": False, "loading": _loading(server)}
    return HttpResponse(400, JSON_HEADERS, orjson.dumps(loading))


async def model_ready(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return 200 if that version, or the newest that serves, can serve; 400 if it cannot or is unknown.

    Raises Loading, which has status 503, while it loads.
    """
    try:
        serves = await server.control.health.model_ready(call.model, call.version)
    except CoreError as error:
        if isinstance(error, Loading) or error.kind not in (Kind.NOT_FOUND, Kind.UNAVAILABLE):
            raise
        serves = False
    return HttpResponse() if serves else refusal(400, "Model version not ready")


def _loading(server: InferenceServer) -> list[dict[str, str]]:
    """Return an entry for each version that is loading, at most _MOST_LOADING.

    `reason` says its step, and for how long. Name, namespace and version are there only if there is neither
    an access policy nor a restriction of model-repository: more callers may ask for health than for models.
    """
    restricted = HttpOptions.of(server.options).http_restricted_api
    has_names = context_of(server).policy is None and "model-repository" not in restricted
    shown = ("name", "namespace", "version", "reason") if has_names else ("reason",)
    loading = server.manager.loading(_MOST_LOADING)
    return [{key: each[key] for key in shown if key in each} for each in loading]


def _as_status(healthy: bool) -> HttpResponse:
    return HttpResponse(200 if healthy else 400)
