"""The route /v2/models/<model>/settings on the HTTP port."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core_settings.control import ModelSettingsControl
from frontends.http.codec.json_text import read_control
from frontends.http.extra_routes import HttpRoutes
from frontends.http.message import HttpRequest, HttpResponse
from frontends.http.route import row
from frontends.http.services.metadata import json_answer

if TYPE_CHECKING:
    from core.server import InferenceServer

_PATH = "/v2/models/(?P<model>[^/]+)/settings"


def add_to(server: InferenceServer, control: ModelSettingsControl) -> None:
    """Add the route to a server. Call it in core_server_starting."""

    async def get(server: InferenceServer, call: HttpRequest) -> HttpResponse:
        """Return the live settings of a model: what is in force, what its configuration says, the history."""
        return json_answer(control.get(call.model))

    async def post(server: InferenceServer, call: HttpRequest) -> HttpResponse:
        """Change live settings of a model, and return the same as GET."""
        settings = read_control(call.body) if len(call.body) else {}
        return json_answer(await control.set(call.model, settings))

    HttpRoutes.of(server).add(
        [
            row("GET", _PATH, "model_settings.get", get),
            row("POST", _PATH, "model_settings.set", post),
        ]
    )
