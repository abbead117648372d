"""The page /docs: Swagger UI with the models that serve.

The page and its scripts are files that hold nothing of this server, so every caller may get them: a browser
cannot send a token with the address of a page. The page gets /docs/openapi.json, which lists models and so
needs what the repository index needs; its button Authorize takes the token.
"""

from __future__ import annotations

import importlib.util
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from core.errors import CoreError, not_found, unsupported
from core.server import InferenceServer
from frontends.http.message import HttpRequest, HttpResponse
from frontends.http.model_openapi import DescribedModel, model_path, models_description
from frontends.http.options import HttpOptions
from frontends.http.services.metadata import json_answer
from frontends.http.services.models import listed
from frontends.shared.context import context_of

# Only files of this server: a model's name that looks like a script stays text.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".png": "image/png",
}
PACKAGE = "flask_swagger_ui"  # of which only the files are used
_OWN = ("start.js", "start.css")
_SWAGGER = ("swagger-ui-bundle.js", "swagger-ui.css", "favicon-32x32.png")


async def page(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return the page /docs. Raises CoreError(UNSUPPORTED) if Swagger UI is not installed."""
    _swagger()
    return file_of("page.html")


async def file(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return a script, a style or an icon of the page.

    Raises CoreError: NOT_FOUND for other files, and for Swagger UI's own files what `_swagger` raises.
    """
    name = call.captures["file"]
    if name not in (*_OWN, *_SWAGGER):
        raise not_found(f"the page /docs has no file '{name}'")
    return file_of(name)


async def described(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return the OpenAPI document of the models that serve.

    Models that share their name with another one are left out.
    """
    models = []
    for entry in await listed(server):
        try:
            signature = server.models.signature(entry["name"])
            config = server.models.config(entry["name"])
        except CoreError:  # it does not serve, or several models have the name
            continue
        models.append(
            DescribedModel(
                model_path(entry["name"]),
                signature,
                config.platform or config.backend,
                entry["versions"],
                config.HasField("sequence_batching"),
            )
        )
    return json_answer(models_description(models, _security(server)))


def _security(server: InferenceServer) -> dict[str, Any]:
    """Return name → security scheme of OpenAPI for what callers of the page's paths must send.

    It is a token if the server has an access policy, and each header that --http-restricted-api requires for
    inference, metadata, model-config or health.
    """
    found: dict[str, Any] = {}
    if context_of(server).policy is not None:
        found["token"] = {"type": "http", "scheme": "bearer"}
    for category, (header, _) in HttpOptions.of(server.options).http_restricted_api.items():
        if category in ("inference", "metadata", "model-config", "health"):
            found[header] = {"type": "apiKey", "in": "header", "name": header}
    return found


@cache
def file_of(name: str) -> HttpResponse:
    """Return the response with the page or one of its files. Raises what `_swagger` raises."""
    if name in _SWAGGER:
        data = (_swagger() / name).read_bytes()
    else:
        data = resources.files("frontends.http").joinpath("docs").joinpath(name).read_bytes()
    return HttpResponse(
        200,
        {
            "Content-Type": _TYPES[Path(name).suffix],
            "Content-Security-Policy": _POLICY,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-cache" if name == "page.html" else "max-age=3600",
        },
        data,
    )


def _swagger() -> Path:
    """Return the folder with Swagger UI's files. Raises CoreError(UNSUPPORTED) if it is not installed."""
    found = importlib.util.find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise unsupported(
            "the page /docs needs Swagger UI; try: pip install --find-links wheels 'core[docs]'"
        )
    return Path(found.submodule_search_locations[0], "dist")
