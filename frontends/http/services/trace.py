"""The trace extension: trace settings of the server, or of the model in the path, at run time."""

from __future__ import annotations

from core.errors import invalid
from core.server import InferenceServer
from frontends.http.codec.json_text import read_control
from frontends.http.message import HttpRequest, HttpResponse
from frontends.http.services.metadata import json_answer


async def settings(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return all settings."""
    return json_answer(server.control.settings.trace_settings(call.captures["model"] or ""))


async def change(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Apply the body, then return all settings; null clears a setting."""
    model, changes = call.captures["model"] or "", read_control(call.body)
    if type(changes) is not dict:
        raise invalid('trace settings must be a JSON object, such as {"trace_rate": "1"}')
    return json_answer(await server.control.settings.change_trace_settings(changes, model))
