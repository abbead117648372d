"""The route /v2/models/<model>/traffic on the HTTP port."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core_traffic.control import TrafficControl
from frontends.http.codec.json_text import read_control
from frontends.http.extra_routes import HttpRoutes
from frontends.http.message import HttpRequest, HttpResponse
from frontends.http.route import row
from frontends.http.services.metadata import json_answer

if TYPE_CHECKING:
    from core.server import InferenceServer

_PATH = "/v2/models/(?P<model>[^/]+)/traffic"


def add_to(server: InferenceServer, control: TrafficControl) -> None:
    """Add the route to a server. Call it in core_server_starting."""

    async def get(server: InferenceServer, call: HttpRequest) -> HttpResponse:
        """Return the traffic of a model: its settings, and the counters of each version."""
        return json_answer(await control.get(call.model))

    async def put(server: InferenceServer, call: HttpRequest) -> HttpResponse:
        """Set the traffic of a model, and return the same as GET."""
        await control.set(call.model, read_control(call.body) if len(call.body) else {})
        return json_answer(await control.get(call.model))

    HttpRoutes.of(server).add(
        [row("GET", _PATH, "traffic.get", get), row("POST", _PATH, "traffic.set", put)]
    )
