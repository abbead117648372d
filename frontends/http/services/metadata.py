"""What the server and its models say about themselves, and statistics of the models."""

from __future__ import annotations

from typing import Any

import orjson

from core.server import InferenceServer
from frontends.http.message import JSON_HEADERS, Answer, Call


def json_answer(value: Any) -> Answer:
    """The answer 200 with that value."""
    return Answer(200, JSON_HEADERS, orjson.dumps(value))


async def server_metadata(server: InferenceServer, call: Call) -> Answer:
    """Name, version and extensions."""
    return json_answer(server.metadata())


async def model_metadata(server: InferenceServer, call: Call) -> Answer:
    """Inputs, outputs and versions."""
    return json_answer(server.models.metadata(call.model, call.version))


async def model_config(server: InferenceServer, call: Call) -> Answer:
    """The completed configuration."""
    return json_answer(server.models.config_json(call.model, call.version))


async def all_statistics(server: InferenceServer, call: Call) -> Answer:
    """Statistics of every ready version of every model."""
    return json_answer({"model_stats": await server.control.health.statistics()})


async def model_statistics(server: InferenceServer, call: Call) -> Answer:
    """Statistics of one model, or of one version."""
    entries = await server.control.health.statistics(call.model, call.version)
    return json_answer({"model_stats": entries})
