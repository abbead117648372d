"""What the server and its models say about themselves, and statistics of the models."""

from __future__ import annotations

from typing import Any

import orjson

from core.server import InferenceServer
from frontends.http.message import JSON_HEADERS, HttpRequest, HttpResponse


def json_answer(value: Any) -> HttpResponse:
    """The answer 200 with that value."""
    return HttpResponse(200, JSON_HEADERS, orjson.dumps(value))


async def server_metadata(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Name, version and extensions."""
    return json_answer(server.metadata())


async def model_metadata(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Inputs, outputs and versions."""
    return json_answer(server.models.metadata(call.model, call.version))


async def model_config(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """The completed configuration."""
    return json_answer(server.models.config_json(call.model, call.version))


async def all_statistics(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Statistics of every ready version of every model."""
    return json_answer({"model_stats": await server.control.health.statistics()})


async def model_statistics(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Statistics of one model, or of one version."""
    entries = await server.control.health.statistics(call.model, call.version)
    return json_answer({"model_stats": entries})
