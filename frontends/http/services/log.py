"""The logging extension: log settings, read and changed at run time."""

from __future__ import annotations

from core.errors import invalid
from core.server import InferenceServer
from frontends.http.codec.json_text import read_control
from frontends.http.message import HttpRequest, HttpResponse
from frontends.http.services.metadata import json_answer


async def settings(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return all settings."""
    return json_answer(server.control.settings.log_settings())


async def change(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Apply the body, then return all settings; null changes nothing."""
    changes = read_control(call.body)
    if type(changes) is not dict:
        raise invalid('log settings must be a JSON object, such as {"log_verbose_level": 1}')
    return json_answer(await server.control.settings.change_log_settings(changes))
