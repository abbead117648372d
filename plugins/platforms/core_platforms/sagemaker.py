"""SageMakerFrontend: the container contract of Amazon SageMaker, on --sagemaker-port.

aiohttp ─► listener ─► [table] ─► services of the v2 protocol
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from core.errors import invalid
from core_platforms.binary import BinaryForm
from core_platforms.default import default_model
from core_platforms.options import EVERYWHERE, SageMakerOptions
from core_platforms.sagemaker_folder import ROOT
from core_platforms.sagemaker_models import SageMakerModels
from frontends.http.errors import refusal
from frontends.http.interceptors import restrictions
from frontends.http.listener import HttpListener
from frontends.http.message import HttpRequest, HttpResponse
from frontends.http.options import HttpOptions
from frontends.http.router import Match, Route, Router, Service, row
from frontends.http.services import health
from frontends.http.services.generate import generate, generate_stream
from frontends.http.services.infer import infer
from frontends.shared.interceptors import Restrictions

if TYPE_CHECKING:
    from core.server import InferenceServer

BINARY = BinaryForm("application/vnd.sagemaker-triton.binary+json", answers=True)
DEFAULT = "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"
TYPE = "SAGEMAKER_TRITON_INFERENCE_TYPE"
PING = "SAGEMAKER_TRITON_PING_MODE"

_TYPES: dict[str, Service] = {
    "infer": BINARY.service(infer),
    "generate": generate,
    "generate_stream": generate_stream,
}
_PINGS: dict[str, Service] = {"ready": health.ready, "live": health.live}


class SageMakerFrontend(HttpListener):
    """The contract of SageMaker's containers: /ping, /invocations and /models.

    Not thread-safe: call from the event loop only.
    """

    name = "sagemaker"
    _binary_bound = staticmethod(BINARY.largest)

    def __init__(self, server: InferenceServer, root: str = ROOT):
        """Read the environment. Raises CoreError(INVALID) for unknown values of its variables.

        root   folder in which SageMaker unpacks the models of a multi-model endpoint
        """
        self._options = SageMakerOptions.of(server.options)
        super().__init__(
            server,
            SageMakerRouter(
                restrictions(HttpOptions.of(server.options).http_restricted_api), table(root)
            ),
            "Sagemaker HTTPService",
            EVERYWHERE,
            self._options.sagemaker_port,
            reuse_port=server.options.workers > 1,
        )

    @property
    def enabled(self) -> bool:
        return self._options.allow_sagemaker


class SageMakerRouter(Router):
    """Router of SageMaker's table. Unknown paths are 400.

    A wrong method is 400 for the paths that manage models (category model-repository), else 405.
    """

    def __init__(self, restrictions: Restrictions, rows: Sequence[Route]):
        super().__init__(restrictions, rows, unknown=400)

    def named(self, server: InferenceServer, match: Match) -> Mapping[str, Any]:
        """Return the named parts of a path unchanged, because its model names are hashes of SageMaker."""
        return match.captures

    def checked(
        self, route: Route, captures: Mapping[str, Any], method: str, headers: Mapping[str, str]
    ) -> Match | HttpResponse:
        if route.category == "model-repository" and method not in route.methods:
            return refusal(self.unknown, f"there is no {method} here")
        return super().checked(route, captures, method, headers)


def table(root: str) -> tuple[Route, ...]:
    """Return the routes of SageMaker. Environment variables choose the services of /invocations and /ping.

    root   folder in which SageMaker unpacks models
    Raises CoreError(INVALID) for an unknown value of a variable.
    """
    models = SageMakerModels(_TYPES["infer"], root)
    one = "/models/(?P<model>[^/]+)"
    return (
        row("POST", "/invocations", "inference", _invocations(_chosen(TYPE, _TYPES))),
        row("POST", f"{one}/invoke", "inference", models.invoke),
        row("GET", "/ping", "health", _chosen(PING, _PINGS)),
        row("GET", "/models/?", "model-repository", models.index),
        row("POST", "/models/?", "model-repository", models.load),
        row("GET", f"{one}(?:/invoke)?", "model-repository", models.one),
        row("DELETE", one, "model-repository", models.unload),
    )


def _invocations(service: Service) -> Service:
    """Return a service that calls `service` with the default model, which it finds anew for each request.

    An environment variable, read now, names the model. If it is empty, the only model that serves is taken.
    """
    named = os.environ.get(DEFAULT, "")

    async def ask_default(server: InferenceServer, call: HttpRequest) -> HttpResponse:
        model = default_model(server, named, f"the variable {DEFAULT}")
        call.captures = {"model": model, "version": None}
        return await service(server, call)

    return ask_default


def _chosen(variable: str, known: dict[str, Service]) -> Service:
    """Return the service in `known` that an environment variable names; the first if it is unset or empty.

    Raises CoreError(INVALID) for a name that `known` lacks.
    """
    value = os.environ.get(variable) or next(iter(known))
    if value not in known:
        raise invalid(f"{variable} is '{value}', expected one of {', '.join(known)}")
    return known[value]
