"""POST /v1/responses: OpenAI's Responses. No response is stored, so each request has its whole conversation.

JSON ─► ChatRequest ─► prompt, sampling ─► one request to the model ─► response, or its events
"""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING, Any

from core_generate.chat.anthropic_events import sse
from core_generate.chat.responses import read_response_request
from core_generate.chat.responses_events import ResponseEvents

from core.errors import CoreError
from frontend_openai.adapter import Asked
from frontend_openai.answers import AnswerEvents, WholeAnswer
from frontend_openai.conversation import off_loop, prompt_of, sampling_of, text_parser
from frontend_openai.document import read_object
from frontend_openai.events import Usage
from frontend_openai.generation import Generation
from frontend_openai.models import TextModels
from frontend_openai.options import OpenAIOptions
from frontend_openai.service import run
from frontends.http.message import HttpRequest, HttpResponse

if TYPE_CHECKING:
    from core.server import InferenceServer

_NAMES = {"max_tokens": "max_output_tokens", "structure": "text.format"}


async def responses(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Generate one of OpenAI's Responses, as one JSON object or as events."""
    body = read_object(call.body)
    request = await off_loop(call.body, read_response_request, body)
    model, adapter = TextModels.of(server).find(request.model)
    call.captures = {"model": model.signature.name, "version": None}
    default = OpenAIOptions.of(server.options).openai_default_max_tokens
    sampling = sampling_of(request, adapter, default, _NAMES)
    prompt = await off_loop(
        call.body,
        prompt_of,
        request.conversation,
        model,
        request.tools,
        request.arguments,
        structured=sampling.structured,
    )
    model.check(prompt, sampling)
    requests = model.requests(prompt, [sampling], Asked(request.stream, usage=True))
    usage = Usage(1)
    parser = text_parser(model, request.tools, prompt, sampling.structured)
    maker = ResponseEvents(f"resp_{secrets.token_hex(24)}", body, int(time.time()))
    if request.stream:
        events = AnswerEvents(maker, usage, parser, lambda finish, _: _end(maker, finish, usage))
        generation = Generation([events], model.output, bytes, lambda error: _failed(maker, error))
        return await run(server, call, model, generation, requests, usage, None)
    answer = WholeAnswer(usage, parser)
    generation = Generation([answer], model.output, bytes, lambda error: _failed(maker, error))

    def whole() -> dict[str, Any]:
        maker.feed(answer.parts)
        found: dict[str, Any] = _end(maker, answer.finish, usage)[-1]["response"]
        return found

    return await run(server, call, model, generation, requests, usage, whole)


def _end(maker: ResponseEvents, finish: str, usage: Usage) -> list[dict[str, Any]]:
    """Return the last events; their usage is null if the model does not count tokens."""
    found = usage.members()
    if found is None:
        events = maker.end(finish)
        events[-1]["response"]["usage"] = None
        return events
    return maker.end(
        finish, prompt_tokens=found["prompt_tokens"], tokens=found["completion_tokens"]
    )


def _failed(maker: ResponseEvents, error: CoreError) -> bytes:
    return b"".join(map(sse, maker.fail(error)))
