"""BenchRoutes: the route, and the measurement that runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.errors import unavailable
from core_bench.http.process_events import ProcessEvents
from core_bench.http.request import BenchRequest
from core_bench.plugin import CATEGORY
from frontends.http.codec.json_text import read_control
from frontends.http.extra_routes import HttpRoutes
from frontends.http.message import HttpRequest, HttpResponse
from frontends.http.route import row

if TYPE_CHECKING:
    from core.server import InferenceServer

_PATH = "/v2/models/(?P<model>[^/]+)(?:/versions/(?P<version>[0-9]+))?/bench"
_END_S = 5.0


class BenchRoutes:
    """The service of one server. Event loop only."""

    def __init__(self, server: InferenceServer):
        self._running: ProcessEvents | None = None

    def add_to(self, server: InferenceServer) -> None:
        """Add the route to the HTTP port of a server. Call it in core_server_starting."""
        routes = HttpRoutes.of(server)
        routes.add([row("POST", _PATH, CATEGORY, self.bench)])
        routes.on_end(self.end)

    def end(self) -> None:
        """End the measurement that runs, because the server begins to stop."""
        if self._running is not None:
            self._running.end()

    async def close(self) -> None:
        """End the measurement that runs: the server has stopped."""
        self.end()

    async def bench(self, server: InferenceServer, call: HttpRequest) -> HttpResponse:
        """Measure a model of this server, and return events with the progress and the report."""
        wanted = BenchRequest.of(read_control(call.body) if len(call.body) else {})
        server.models.signature(call.model, call.version)  # raises for a model that does not serve
        document = wanted.document(server, call.model, call.version, call.headers)
        if self._running is not None and self._running.runs:
            raise unavailable("a measurement is running; wait for its end, or stop it")
        self._running = ProcessEvents(
            "core_bench.http.worker", document, ("report", "failed"), _END_S
        )
        return self._running.response()
