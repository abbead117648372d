"""Router: maps a path to a service.

Paths are matched as received: a percent sign is not decoded. Only the name of a model is decoded, if no
model has the encoded name (names.py).
The first row of the table that fits path and method decides; else the first that fits the path.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from functools import cache
from typing import Any, NamedTuple

from core.control import Area, Operation
from core.server import InferenceServer
from frontends.http.errors import error_answer, refusal
from frontends.http.extra_routes import HttpRoutes, Refusals
from frontends.http.message import JSON_HEADERS, HttpRequest, HttpResponse
from frontends.http.names import with_model
from frontends.http.openapi import description
from frontends.http.route import Route as Route
from frontends.http.route import Service as Service
from frontends.http.route import row as row
from frontends.http.services import (
    control,
    docs,
    health,
    metadata,
    models,
    repository,
    settings,
    shared_memory,
)
from frontends.http.services.generate import generate, generate_stream
from frontends.http.services.infer import infer
from frontends.shared.access import Requirement, requirement
from frontends.shared.interceptors import Restrictions
from frontends.shared.json_operations import offered


class Match(NamedTuple):
    route: Route
    captures: Mapping[str, Any]


_MODEL = "/v2/models/(?P<model>[^/]+)(?:/versions/(?P<version>[0-9]+))?"
_REPOSITORY = "/v2/repository(?:/(?P<repository>[^/]+))?"
_REGION = "(?:/region/(?P<region>[^/]+))?"
_SYSTEM = f"/v2/(?P<kind>system)sharedmemory{_REGION}"
_CUDA = f"/v2/(?P<kind>cuda)sharedmemory{_REGION}"
_TRACE = "/v2(?:/models/(?P<model>[^/]+))?/trace/setting"

_ROWS = (
    row("POST", f"{_MODEL}/infer", "inference", infer),
    row("GET", "/v2/health/live", "health.live", health.live),
    row("GET", "/v2/health/ready", "health.ready", health.ready),
    row("GET", "/v2", "metadata", metadata.server_metadata),
    row("GET", "/v2/models/stats", "health.statistics", metadata.all_statistics),
    row("GET", "/v2/models", "model-repository", models.models),
    row("GET", _MODEL, "metadata", metadata.model_metadata),
    row("GET", f"{_MODEL}/ready", "health.model_ready", health.model_ready),
    row("GET", f"{_MODEL}/config", "model-config", metadata.model_config),
    row("GET", f"{_MODEL}/stats", "health.statistics", metadata.model_statistics),
    row("POST", f"{_MODEL}/generate", "inference", generate),
    row("POST", f"{_MODEL}/generate_stream", "inference", generate_stream),
    row("POST", f"{_REPOSITORY}/index", "repository.index", repository.index),
    row(
        "POST",
        f"{_REPOSITORY}/models/(?P<model>[^/]+)/load",
        "repository.load",
        repository.load,
        brings_files=True,
    ),
    row(
        "POST",
        f"{_REPOSITORY}/models/(?P<model>[^/]+)/unload",
        "repository.unload",
        repository.unload,
    ),
    row("POST", _TRACE, "settings.change_trace_settings", settings.change_trace),
    row("GET", _TRACE, "settings.trace_settings", settings.trace),
    row("POST", "/v2/logging", "settings.change_log_settings", settings.change_log),
    row("GET", "/v2/logging", "settings.log_settings", settings.log),
    row("GET", f"{_SYSTEM}/status", "memory.status", shared_memory.status),
    row("GET", f"{_CUDA}/status", "memory.cuda_status", shared_memory.status),
    row("POST", f"{_SYSTEM}/register", "memory.register", shared_memory.register),
    row("POST", f"{_CUDA}/register", "memory.register_cuda", shared_memory.register),
    row("POST", f"{_SYSTEM}/unregister", "memory.unregister", shared_memory.unregister),
    row("POST", f"{_CUDA}/unregister", "memory.unregister_cuda", shared_memory.unregister),
)


async def openapi(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return the OpenAPI document of this server's routes."""
    rows = (*table(server.control.areas), *HttpRoutes.of(server).rows)
    return HttpResponse(200, JSON_HEADERS, description(rows))


TABLE = (
    *_ROWS,
    row("GET", "(?:/v2)?/openapi\\.json", "metadata", openapi),
    row("GET", "/docs", "metadata", docs.page, is_open=True),
    row("GET", "/docs/openapi\\.json", "model-repository", docs.described),
    row("GET", "/docs/(?P<file>[\\w.-]+)", "metadata", docs.file, is_open=True),
)
_SERVED = frozenset(route.operation for route in TABLE)


def table(areas: Mapping[str, Area | type[Area]]) -> tuple[Route, ...]:
    """Return the routes of a server with these areas: TABLE, then one for each operation that TABLE lacks.

    Those are routes /control/<name of the operation>, for operations with a JSON form that are not internal.
    """
    return (*TABLE, *_control_rows(offered(areas.values(), _SERVED)))


def unknown_operations(table: Sequence[Route]) -> Route:
    """Return the route that refuses each path /control/<name> for which `table` has no route."""
    known = "|".join(route.path.pattern for route in table if route.is_generic)
    path = rf"(?!(?:{known})\Z){control.PATH}[^/]*"
    return row("GET POST", path, "metadata", control.unknown)


@cache
def _control_rows(operations: tuple[Operation, ...]) -> tuple[Route, ...]:
    return tuple(
        row(
            "POST" if each.changes else "GET POST",
            re.escape(f"{control.PATH}{each.name}"),
            each.name,
            control.service(each),
            is_generic=True,
        )
        for each in operations
    )


class Router:
    """A table of routes with the restrictions of one server.

    restrictions   the headers with secrets that some categories require
    unknown        status of the response if no route fits the path
    refusals       (regular expression of the start of paths, function that puts their refusals into another
                   form), as in HttpRoutes
    """

    def __init__(
        self,
        restrictions: Restrictions,
        table: Sequence[Route],
        unknown: int = 404,
        refusals: Sequence[Refusals] = (),
    ):
        self.restrictions = restrictions
        self._table = table
        self.unknown = unknown
        self._refusals = refusals

    def match(self, method: str, path: str, headers: Mapping[str, str]) -> Match | HttpResponse:
        """Return the route of a request and the named parts of its path, or the response that refuses it.

        path   without its query
        The refusal has status `unknown` for a path without a route, 403 without the header that the category
        of a route requires (unless the route is open), 405 for a method that the route does not have. The
        first of these that applies is returned.
        """
        if (found := self._fitting(method, path)) is None:
            return refusal(self.unknown, "Not Found")
        return self.checked(*found, method, headers)

    def requirement(self, method: str, path: str, headers: Mapping[str, str]) -> Requirement | None:
        """Return the category of a request and its roles; None for an open route or without a route.

        path      without its query
        headers   for routers of plugins; this one ignores them
        """
        if (found := self._fitting(method, path)) is None:
            return None
        route, _ = found
        if route.is_open:
            return None
        return requirement(route.category, changes=not route.looks and method != "GET")

    def captures(self, method: str, path: str) -> Mapping[str, Any]:
        """Return name → text, None if absent, of the named parts of a path; {} for a path without a route.

        path   without its query
        """
        found = self._fitting(method, path)
        return {} if found is None else found[1]

    def named(self, server: InferenceServer, match: Match) -> Mapping[str, Any]:
        """Return the named parts of a path; the model's name is decoded if needed (names.with_model)."""
        return with_model(server, match.captures, match.route.category)

    def refused(self, path: str, answer: HttpResponse) -> HttpResponse:
        """Return a refusal in the form for this path: changed by a function in `refusals`, else unchanged."""
        for below, form in self._refusals:
            if re.match(below, path):
                return form(answer)
        return answer

    def methods(self, path: str) -> Set[str]:
        """Return the HTTP methods of all routes that fit a path without query; empty if none fits."""
        fits = (route.methods for route in self._table if route.path.fullmatch(path))
        return frozenset().union(*fits)

    def _fitting(self, method: str, path: str) -> tuple[Route, Mapping[str, Any]] | None:
        """Return the first route that fits path and method, or the first that fits the path, or None.

        The named parts of the path come with it.
        """
        other = None
        for route in self._table:
            if (found := route.path.fullmatch(path)) is not None:
                if method in route.methods:
                    return route, found.groupdict()
                other = other or (route, found.groupdict())
        return other

    def checked(
        self, route: Route, captures: Mapping[str, Any], method: str, headers: Mapping[str, str]
    ) -> Match | HttpResponse:
        """Return the Match for a route that fits the path, or the response that refuses the request.

        Refuse it if the headers lack what the category requires, unless the route is open, and if the route
        does not have the method.
        """
        restricted = self.restrictions.objection(route.category, headers.get)
        if restricted is not None and not route.is_open:
            return error_answer(restricted)
        if method not in route.methods:
            return refusal(405, "Method Not Allowed")
        return Match(route, captures)
