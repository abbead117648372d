"""Settings of log and traces, of the server or of the model in the path, at run time."""

from __future__ import annotations

from typing import Any

from core.errors import invalid
from core.server import InferenceServer
from frontends.http.codec.json_text import read_control
from frontends.http.message import HttpRequest, HttpResponse
from frontends.http.services.metadata import json_answer


async def log(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return all settings of the log."""
    return json_answer(server.control.settings.log_settings())


async def change_log(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Change the settings in the body, then return all settings of the log. One that is null stays."""
    changes = _changes(call, "log", '{"log_verbose_level": 1}')
    return json_answer(await server.control.settings.change_log_settings(changes))


async def trace(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return all trace settings of the model in the path, or of the server if the path has none."""
    return json_answer(server.control.settings.trace_settings(call.captures["model"] or ""))


async def change_trace(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Change the trace settings in the body, then return all, of the model in the path or else of the server.

    A setting that is null is cleared.
    """
    changes = _changes(call, "trace", '{"trace_rate": "1"}')
    model = call.captures["model"] or ""
    return json_answer(await server.control.settings.change_trace_settings(changes, model))


def _changes(call: HttpRequest, what: str, example: str) -> dict[str, Any]:
    changes = read_control(call.body)
    if type(changes) is not dict:
        raise invalid(f"{what} settings must be a JSON object, such as {example}")
    return changes
