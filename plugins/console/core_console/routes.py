"""The routes of the console on the HTTP port. Roles and restrictions are those of their categories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from core.control import OPERATIONS
from core_console import assets
from core_console.control import ConsoleControl
from core_console.description import described, version_of
from core_console.hub import Hub
from core_console.notices import Notices
from core_console.permissions import checker, permissions, permitted_routes
from core_console.traces import TraceRing
from frontends.http.extra_routes import HttpRoutes
from frontends.http.message import EVENT_HEADERS, HttpRequest, HttpResponse
from frontends.http.route import Route, row
from frontends.http.services.metadata import json_answer
from frontends.shared.json_operations import json_form

if TYPE_CHECKING:
    from core.server import InferenceServer


class Console:
    """The parts of the console of one server. Loop thread only."""

    def __init__(self, server: InferenceServer):
        self.server = server
        self.notices = Notices()
        self.traces = TraceRing.of(server.options)
        self.control = ConsoleControl(server, self.traces, self.notices)
        self.hub = Hub(self.control)

    async def close(self) -> None:
        """End all events; keep no more records."""
        self.hub.close()
        self.notices.close()


def add_to(server: InferenceServer) -> None:
    """Add the routes and the control operations to a server. Call it in core_server_starting."""
    console = server.shared(Console)
    console.notices.attach()
    server.control.add(console.control)
    routes = HttpRoutes.of(server)
    routes.add(
        [
            row("GET", "/", "metadata", assets.start, is_open=True),
            row("GET", "/console", "metadata", assets.page, is_open=True),
            row("GET", "/console/", "metadata", assets.slash, is_open=True),
            row("GET", "/console/session", "metadata", session),
            row("GET", "/console/stream", "statistics", stream),
            row("GET", "/console/traces", "trace", traces),
            row("GET", "/console/notices", "logging", notices),
            row("GET", "/console/operations", "metadata", operations),
            row(
                "GET",
                "/console/models/(?P<model>[^/]+)(?:/versions/(?P<version>[0-9]+))?",
                "model-config",
                model,
            ),
            row("GET", "/console/(?P<file>[\\w.-]+)", "metadata", assets.file, is_open=True),
        ]
    )


async def session(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return what the caller may do, and what the options of the server permit."""
    options = server.options
    console = server.shared(Console)
    added = [route for route in HttpRoutes.of(server).rows if not route.is_open]
    return json_answer(
        {
            **permissions(server, call),
            "name": server.name,
            "version": server.version,
            "control_mode": options.model_control_mode,
            "remote_settings": options.allow_remote_settings,
            "traces": console.traces is not None,
            "quantiles": options.allow_metrics
            and "true" in (options.metrics_config.get(name) for name in _LATENCIES),
            "grpc_port": next(
                (each.port for each in options.listeners() if each.name == "grpc"), 0
            ),
            "routes": permitted_routes(server, call, (*added, *_generic(server))),
        }
    )


_LATENCIES = ("histogram_latencies", "summary_latencies")


async def stream(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return events, one a second: the state of all models, then what has changed."""
    hub = server.shared(Console).hub
    page = await hub.subscribe(checker(server, call, "statistics"))
    return HttpResponse(200, EVENT_HEADERS, await page.first(), page)


async def traces(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return the kept traces, the latest first; with ?model=NAME those in which the model has a part."""
    model = parse_qs(call.query).get("model", [""])[0]
    return json_answer({"traces": await server.shared(Console).control.traces(model)})


async def notices(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return the last warnings and errors of the log, the latest first."""
    return json_answer({"notices": await server.shared(Console).control.notices()})


async def model(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return the configuration of a model version, what was added to its file, and its stages."""
    return json_answer(await described(server, version_of(server, call.model, call.version)))


async def operations(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return the control operations with a path of their own: name, category, summary, arguments."""
    rows = [route.operation for route in _generic(server)]
    return json_answer({"operations": [_operation(name) for name in rows if name in OPERATIONS]})


def _generic(server: InferenceServer) -> list[Route]:
    """Return the routes /control/<name of the operation>."""
    from frontends.http.router import table  # late: it imports every service

    return [route for route in table(server.control.areas) if route.is_generic]


def _operation(name: str) -> dict[str, Any]:
    found = OPERATIONS[name]
    form = json_form(found)
    return {
        "name": name,
        "category": found.category,
        "changes": found.changes,
        "summary": found.summary,
        "arguments": {} if form is None else dict(form.arguments),
        "required": [] if form is None else list(form.required),
    }
