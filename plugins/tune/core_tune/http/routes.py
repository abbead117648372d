"""TuneRoutes: the route, and the search that runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core_bench.http.process_events import ProcessEvents

from core.errors import unavailable
from core_tune.http.request import TuneRequest
from core_tune.plugin import CATEGORY
from frontends.http.codec.json_text import read_control
from frontends.http.extra_routes import HttpRoutes
from frontends.http.message import HttpRequest, HttpResponse
from frontends.http.route import row

if TYPE_CHECKING:
    from core.server import InferenceServer

_PATH = "/v2/models/(?P<model>[^/]+)/tune"
_END_S = 60.0  # for the model to be loaded with its own settings again


class TuneRoutes:
    """The service of one server. Event loop only."""

    def __init__(self, server: InferenceServer):
        self._running: ProcessEvents | None = None

    def add_to(self, server: InferenceServer) -> None:
        """Add the route to the HTTP port of a server. Call it in core_server_starting."""
        routes = HttpRoutes.of(server)
        routes.add([row("POST", _PATH, CATEGORY, self.tune)])
        routes.on_end(self.end)

    def end(self) -> None:
        """End the search that runs, because the server begins to stop."""
        if self._running is not None:
            self._running.end()

    async def close(self) -> None:
        """End the search that runs: the server has stopped."""
        self.end()

    async def tune(self, server: InferenceServer, call: HttpRequest) -> HttpResponse:
        """Search the best settings of a model, and return events with each measurement and the report."""
        wanted = TuneRequest.of(read_control(call.body) if len(call.body) else {})
        server.models.signature(call.model)  # raises for a model that does not serve
        document = {"arguments": wanted.arguments(server, call.model, call.headers)}
        if self._running is not None and self._running.runs:
            raise unavailable("a search is running; wait for its end, or stop it")
        self._running = ProcessEvents(
            "core_tune.http.worker", document, ("report", "failed"), _END_S
        )
        return self._running.response()
