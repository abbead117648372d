"""The trace extension: trace settings, read and changed at run time."""

from __future__ import annotations

from core.errors import invalid
from core.server import InferenceServer
from frontends.http.codec.json_text import read_control
from frontends.http.message import HttpRequest, HttpResponse
from frontends.http.services.metadata import json_answer


async def trace_settings(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """GET: return all settings, of the server or of the model in the path. POST: apply the body first; null
    clears a setting."""
    model = call.captures["model"] or ""
    if call.method == "GET":
        return json_answer(server.control.settings.trace_settings(model))
    changes = read_control(call.body)
    if type(changes) is not dict:
        raise invalid('trace settings must be a JSON object, such as {"trace_rate": "1"}')
    return json_answer(await server.control.settings.change_trace_settings(changes, model))
