"""The table of the routes of OpenAI, and of others with the same models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from frontend_openai.chat import chat_completions
from frontend_openai.completions import completions
from frontend_openai.embeddings import embeddings
from frontend_openai.errors import in_form
from frontend_openai.messages import count_tokens, in_message_form, message_refusal, messages
from frontend_openai.models import TextModels
from frontend_openai.rerank import rerank
from frontend_openai.responses import responses
from frontend_openai.service import json_response, service
from frontend_openai.tokenize import detokenize, tokenize
from frontend_openai.transcriptions import transcriptions
from frontends.http.extra_routes import HttpRoutes, Refusals
from frontends.http.message import HttpRequest, HttpResponse
from frontends.http.names import as_known
from frontends.http.route import Route, row

if TYPE_CHECKING:
    from core.server import InferenceServer

# Starts of paths, and the form of their refusals: the first that fits decides.
REFUSALS: tuple[Refusals, ...] = (
    ("/v1/messages", in_message_form),
    *((below, in_form) for below in ("/v1/", "/tokenize", "/detokenize")),
)
# Names may have slashes, as those of the hubs do.
_MODEL = "/v1/models/(?P<model>.+)"


async def models(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return the models that serve."""
    return json_response({"object": "list", "data": TextModels.of(server).listed()})


async def model(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return one model that serves."""
    found = TextModels.of(server)
    names = {entry["id"] for entry in found.listed()}
    return json_response(found.entry(as_known(call.model, names.__contains__)))


async def load(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Load a model of the repositories; return when it is ready."""
    await server.control.repository.load(call.model, {})
    return json_response(TextModels.of(server).entry(call.model))


async def unload(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Unload a model; return when no version is ready any more."""
    await server.control.repository.unload(call.model)
    return json_response({"status": "success", "model": call.model})


ROWS: tuple[Route, ...] = (
    row("POST", "/v1/chat/completions", "inference", service("inference", chat_completions)),
    row("POST", "/v1/completions", "inference", service("inference", completions)),
    row("POST", "/v1/embeddings", "inference", service("inference", embeddings)),
    row("POST", "/v1/rerank", "inference", service("inference", rerank)),
    row("POST", "/v1/responses", "inference", service("inference", responses)),
    row("POST", "/v1/messages", "inference", service("inference", messages, message_refusal)),
    row(
        "POST",
        "/v1/messages/count_tokens",
        "inference",
        service("inference", count_tokens, message_refusal),
    ),
    row("POST", "/v1/audio/transcriptions", "inference", service("inference", transcriptions)),
    row("POST", "/tokenize", "inference", service("inference", tokenize)),
    row("POST", "/detokenize", "inference", service("inference", detokenize)),
    row("GET", "/v1/models", "metadata", service("model-repository", models)),
    row("POST", f"{_MODEL}/load", "repository.load", service("model-repository", load)),
    row("POST", f"{_MODEL}/unload", "repository.unload", service("model-repository", unload)),
    row("GET", _MODEL, "metadata", service("model-repository", model)),
)


def add_to(server: InferenceServer) -> None:
    """Add the routes to the HTTP port of a server."""
    routes = HttpRoutes.of(server)
    routes.add(ROWS)
    for below, refused in REFUSALS:
        routes.add((), below, refused)
