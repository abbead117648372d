"""VertexAIFrontend: the container contract of Google's Vertex AI, on --vertex-ai-port.

Vertex AI uses two paths, which environment variables set. A header of the client redirects a request from
the predict path to paths of the v2 protocol.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from core.errors import CoreError, invalid
from core_platforms.binary import BinaryForm
from core_platforms.default import default_model
from core_platforms.options import (
    EVERYWHERE,
    HEALTH_ROUTE,
    PREDICT_ROUTE,
    VertexAIOptions,
)
from frontends.http.errors import refusal
from frontends.http.interceptors import restrictions
from frontends.http.listener import HttpListener
from frontends.http.message import HttpRequest, HttpResponse
from frontends.http.options import HttpOptions
from frontends.http.router import TABLE, Match, Router, row
from frontends.http.services import health
from frontends.http.services.infer import infer
from frontends.metrics.text import CONTENT_TYPE, render
from frontends.shared.access import Requirement
from frontends.shared.interceptors import Restrictions

if TYPE_CHECKING:
    from core.server import InferenceServer

logger = logging.getLogger("core")

BINARY = BinaryForm("application/vnd.vertex-ai-triton.binary+json", answers=False)
REDIRECT = "X-Vertex-Ai-Triton-Redirect"

_infer = BINARY.service(infer)
_NO_PLACE = ("logging", "trace")  # a platform's clients may not use settings


class VertexAIFrontend(HttpListener):
    """The contract of Vertex AI's containers. Not thread-safe: call from the event loop only."""

    name = "vertex_ai"
    _binary_bound = staticmethod(BINARY.largest)

    def __init__(self, server: InferenceServer):
        self._options = VertexAIOptions.of(server.options)
        super().__init__(
            server,
            VertexAIRouter(restrictions(HttpOptions.of(server.options).http_restricted_api)),
            "Vertex AI HTTPService",
            EVERYWHERE,
            self._options.vertex_ai_port,
            reuse_port=server.options.workers > 1,
        )

    @property
    def enabled(self) -> bool:
        return self._options.allow_vertex_ai

    async def start(self) -> None:
        """Listen. Raises CoreError(INVALID) if a path is not set, and the errors of HttpListener.start."""
        for variable in (PREDICT_ROUTE, HEALTH_ROUTE):
            if not os.environ.get(variable):
                raise invalid(f"{variable} is not defined for Vertex AI endpoint")
        await super().start()


class VertexAIRouter(Router):
    """Router of the two paths, and of redirects: a header sends a request to the predict path to a v2 path.

    A redirect needs POST, else it is 405. It leads to inference and to read-only requests, whatever their v2
    method is. Other known paths are 403, unknown ones 400.
    """

    def __init__(self, restrictions: Restrictions):
        self._predict = os.environ.get(PREDICT_ROUTE, "")
        table = (
            row("GET", re.escape(os.environ.get(HEALTH_ROUTE, "")), "health", _healthy),
            row("POST", re.escape(self._predict), "inference", _predicted),
        )
        super().__init__(restrictions, table, unknown=400)

    def match(self, method: str, path: str, headers: Mapping[str, str]) -> Match | HttpResponse:
        if (target := self._target(path, headers)) is None:
            return super().match(method, path, headers)
        if method != "POST":
            return refusal(405, "Method Not Allowed")
        for route in _LED:
            found = None if route.is_open else route.path.fullmatch(target)
            if found is not None:
                inference = route.category == "inference"
                if not (route.looks or inference or route.methods == {"GET"}):
                    return refusal(403, f"'{target[1:]}' is for the HTTP port of the server only")
                return self.checked(route, found.groupdict(), next(iter(route.methods)), headers)
        return refusal(400, f"{REDIRECT} names nothing that is known: '{target[1:]}'")

    def requirement(self, method: str, path: str, headers: Mapping[str, str]) -> Requirement | None:
        if (target := self._target(path, headers)) is None:
            return super().requirement(method, path, headers)
        return _V2.requirement("GET", target, headers)

    def _target(self, path: str, headers: Mapping[str, str]) -> str | None:
        """Return the v2 path that the header REDIRECT names; None without it, or for other paths."""
        target = headers.get(REDIRECT) if path == self._predict else None
        return None if target is None else f"/{target}"


async def _healthy(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return 200 if the server and the default model are ready; 400 if no default model can be found.

    Otherwise return the response of the check that failed (frontends.http.services.health).
    """
    if (answer := await health.ready(server, call)).status != 200:
        return answer
    try:
        asked = _to_default(server, call)
    except CoreError as error:  # a health check may not require access to the models
        logger.warning("Vertex AI: not healthy: %s", error.message)
        return HttpResponse(400)
    return await health.model_ready(server, asked)


async def _predicted(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    return await _infer(server, _to_default(server, call))


def _to_default(server: InferenceServer, call: HttpRequest) -> HttpRequest:
    named = VertexAIOptions.of(server.options).vertex_ai_default_model
    model = default_model(server, named, "--vertex-ai-default-model")
    call.captures = {"model": model, "version": None}
    return call


async def _metrics(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    families = await server.control.health.metrics()
    text = await asyncio.get_running_loop().run_in_executor(None, render, families)
    return HttpResponse(200, {"Content-Type": CONTENT_TYPE}, text.encode())


_LED = (
    *(
        each._replace(service=_infer) if each.service is infer else each
        for each in TABLE
        if each.category not in _NO_PLACE
    ),
    row("GET", "/metrics", "metrics", _metrics),
)
_V2 = Router(restrictions({}), _LED)
