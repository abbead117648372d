"""Metadata of the server and its models, and statistics of the models."""

from __future__ import annotations

from typing import Any

import orjson

from core.server import InferenceServer
from frontends.http.message import JSON_HEADERS, HttpRequest, HttpResponse


def json_answer(value: Any) -> HttpResponse:
    """Return a response with status 200 and the value as JSON."""
    return HttpResponse(200, JSON_HEADERS, orjson.dumps(value))


async def server_metadata(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return name, version and extensions of the server."""
    return json_answer(server.metadata())


async def model_metadata(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return inputs, outputs and versions of a model."""
    return json_answer(server.models.metadata(call.model, call.version))


async def model_config(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return the completed configuration of a model."""
    return json_answer(server.models.config_json(call.model, call.version))


async def all_statistics(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return the statistics of every ready version of every model."""
    return json_answer({"model_stats": await server.control.health.statistics()})


async def model_statistics(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return the statistics of each ready version of a model, or of the version in the path."""
    entries = await server.control.health.statistics(call.model, call.version)
    return json_answer({"model_stats": entries})
