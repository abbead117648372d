"""POST /v1/responses: OpenAI's Responses. No response is stored, so each request has its whole conversation.

JSON ─► ChatRequest ─► prompt, sampling ─► one request to the model ─► response, or its events
"""

from __future__ import annotations

import secrets
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson
from core_generate.chat.anthropic_events import sse
from core_generate.chat.responses import read_response_request
from core_generate.chat.responses_events import ResponseEvents

from core.errors import CoreError
from frontend_openai.adapter import TextModel
from frontend_openai.answers import AnswerEvents, WholeAnswer
from frontend_openai.chat_choice import Parser
from frontend_openai.conversation import prepared, sampling_of
from frontend_openai.document import read_object
from frontend_openai.errors import naming
from frontend_openai.events import Usage
from frontend_openai.generation import Generation
from frontend_openai.models import TextModels
from frontend_openai.off_loop import MOST_ON_LOOP, off_loop
from frontend_openai.options import OpenAIOptions
from frontend_openai.service import run
from frontends.http.message import HttpRequest, HttpResponse

if TYPE_CHECKING:
    from core_generate.chat.requests import ChatRequest

    from core.request import InferenceRequest
    from core.server import InferenceServer
    from core.tensor import Buffer

_REPEATED = ("instructions", "text", "tool_choice", "tools")  # members of any size
_NAMES = {"max_tokens": "max_output_tokens", "structure": "text.format"}


async def responses(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Generate one of OpenAI's Responses, as one JSON object or as events."""
    body, request = await off_loop(len(call.body), _read, call.body)
    model, adapter = TextModels.of(server).find(request.model)
    call.captures = {"model": model.signature.name, "version": None}
    default = OpenAIOptions.of(server.options).openai_default_max_tokens
    requests, parser, structure = await off_loop(
        len(call.body), _prepare, request, model, adapter, default
    )
    usage = Usage(1)
    maker = ResponseEvents(f"resp_{secrets.token_hex(24)}", body, int(time.time()))
    if request.stream:
        events = AnswerEvents(maker, usage, parser, lambda finish, _: _end(maker, finish, usage))
        generation = Generation([events], model.output, bytes, lambda error: _failed(maker, error))
        with naming("input", structure):
            return await run(server, call, model, generation, requests, usage, None)
    answer = WholeAnswer(usage, parser)
    generation = Generation([answer], model.output, bytes, lambda error: _failed(maker, error))

    def whole() -> dict[str, Any]:
        maker.feed(answer.parts)
        found: dict[str, Any] = _end(maker, answer.finish, usage)[-1]["response"]
        return found

    with naming("input", structure):
        return await run(server, call, model, generation, requests, usage, whole)


def _read(data: Buffer) -> tuple[dict[str, Any], ChatRequest]:
    """Return the members of a body, for ResponseEvents, and the request that they make."""
    body = read_object(data)
    request = read_response_request(body)
    if len(data) > MOST_ON_LOOP:
        # Three events of a stream repeat these members; their JSON is made here, not on the event loop.
        written = {name: body[name] for name in _REPEATED if body.get(name) is not None}
        body |= {name: orjson.Fragment(orjson.dumps(each)) for name, each in written.items()}
    return body, request


def _prepare(
    request: ChatRequest, model: TextModel, adapter: str, default: int
) -> tuple[list[InferenceRequest], Parser | None, str]:
    """Return what `prepared` returns, and the field with what the text must match. Raise as it does.

    default   as of `sampling_of`
    """
    # `sampling_of` sets its tools, and a slow chat template lets this run twice.
    request = replace(request)
    sampling = sampling_of(request, adapter, default, _NAMES)
    found = prepared(request, model, sampling)
    return *found, sampling.sources.get("structured_outputs", "")


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
