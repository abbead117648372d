"""What all services of these routes share: restrictions, errors in OpenAI's form, and the run of a call."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson

from core.costs import watch_cost
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
from frontends.shared.usage_meter import CountsTokens

if TYPE_CHECKING:
    from core.response import Reply
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
    order: Sequence[int] = (),
) -> HttpResponse:
    """Run the requests of a call; return its response, or the begin of its events.

    usage   counts the tokens for the client
    whole   returns the whole response, after all texts have ended; None for a stream
    order   for each request the number of its prompt; empty if all have the same
    Raises CoreError if a request fails before the first event.
    """
    if id := call.headers.get("X-Request-Id", ""):
        for request in requests:
            request.id = id
    call.asked = requests[0]
    call.reply = generation
    first = generation.start(_submitting(server, call, model, usage, order), requests)
    return await traced(first, _respond(generation, whole))


def _submitting(
    server: InferenceServer,
    call: HttpRequest,
    model: TextModel,
    usage: Usage,
    order: Sequence[int],
) -> Callable[[int, InferenceRequest], Reply]:
    """Return a function that submits a request, by its number in the call. Arguments as of `run`."""

    def submitted(number: int, request: InferenceRequest) -> Reply:
        prompt = order[number] if order else 0
        if usage.wanted:
            watch_cost(request, partial(_reported, model, usage, prompt))
        # Several choices of one prompt count it once.
        is_first = order.index(prompt) == number if order else not number
        return submit(server, call, request, counts_prompt=is_first)

    return submitted


def _reported(model: TextModel, usage: Usage, prompt: int, cost: CountsTokens) -> None:
    model.reports_cost = True
    usage.follow(prompt, cost)


async def _respond(
    generation: Generation, whole: Callable[[], dict[str, Any]] | None
) -> HttpResponse:
    if whole is not None:
        await generation.whole()
        return json_response(whole())
    await generation.first()
    return HttpResponse(200, EVENT_HEADERS, await anext(generation, b""), generation)
