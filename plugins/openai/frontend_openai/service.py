"""What all services of these routes share: restrictions, errors in OpenAI's form, and the run of a call."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import orjson

from core.errors import CoreError, Kind, invalid
from core.request import InferenceRequest
from core.telemetry import log
from frontend_openai.adapter import TextModel
from frontend_openai.errors import FieldError, refusal_of
from frontend_openai.events import Usage
from frontend_openai.generation import Generation
from frontend_openai.options import OpenAIOptions
from frontends.http.message import JSON_HEADERS, HttpRequest, HttpResponse
from frontends.http.route import Service
from frontends.http.services.traced import submit, traced
from frontends.shared.options import SharedOptions

if TYPE_CHECKING:
    from core.server import InferenceServer

EVENT_HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-cache",
    "X-Accel-Buffering": "no",  # a proxy that collects events would delay each token
}


def service(
    category: str, work: Service, refused: Callable[[CoreError], HttpResponse] = refusal_of
) -> Service:
    """Return a service that checks --openai-restricted-api and refuses in the form of its API.

    category   of that flag
    refused    returns the response for an error
    """

    async def serve(server: InferenceServer, call: HttpRequest) -> HttpResponse:
        try:
            _check_restriction(server, call, category)
            if call.headers.get("Content-Encoding", "identity") != "identity":
                raise invalid("Unsupported content-encoding, only 'identity' is supported.")
            return await work(server, call)
        except CoreError as error:
            log.failed("" if call.asked is None else call.asked.id, error)
            return refused(error)

    serve.__doc__ = work.__doc__
    return serve


def _check_restriction(server: InferenceServer, call: HttpRequest, category: str) -> None:
    required = OpenAIOptions.of(server.options).openai_restricted_api.get(category)
    if required is None:
        return
    name, secret = required
    given = call.headers.get(name, "")
    if not hmac.compare_digest(given.encode("utf-8", "surrogateescape"), secret.encode()):
        raise FieldError(
            "",
            f"This API is restricted, expecting header '{name}' with valid value",
            "invalid_auth",
            Kind.UNAUTHENTICATED,
        )


def logs_usage(server: InferenceServer) -> bool:
    """Return whether the access log needs the counts of tokens, also where the client does not."""
    return bool(SharedOptions.of(server.options).access_log)


def json_response(document: Any) -> HttpResponse:
    return HttpResponse(200, JSON_HEADERS, orjson.dumps(document))


async def run(
    server: InferenceServer,
    call: HttpRequest,
    model: TextModel,
    generation: Generation,
    requests: Sequence[InferenceRequest],
    usage: Usage,
    whole: Callable[[], dict[str, Any]] | None,
) -> HttpResponse:
    """Run the requests of a call; return its response, or the begin of its events.

    usage   counts the tokens; the access log reads it
    whole   returns the whole response, after all texts have ended; None for a stream
    Raises CoreError if a request fails before the first event.
    """
    if id := call.headers.get("X-Request-Id", ""):
        for request in requests:
            request.id = id
    call.asked = requests[0]
    call.reply = generation
    call.usage = usage
    first = generation.start(lambda request: submit(server, call, request), requests)
    return await traced(first, _respond(generation, whole))


async def _respond(
    generation: Generation, whole: Callable[[], dict[str, Any]] | None
) -> HttpResponse:
    if whole is not None:
        await generation.whole()
        return json_response(whole())
    await generation.first()
    return HttpResponse(200, EVENT_HEADERS, await anext(generation, b""), generation)
