"""POST /v1/messages and /v1/messages/count_tokens: the API of Anthropic.

JSON ─► ChatRequest ─► prompt, sampling ─► a request to the model ─► message, or its events
"""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypedDict

import orjson
from core_generate.chat.anthropic import BUDGET, error_document, read_message_request
from core_generate.chat.anthropic_events import MessageEvents, message, sse

from core.errors import CoreError
from frontend_openai.adapter import TextModel
from frontend_openai.answers import AnswerEvents, WholeAnswer
from frontend_openai.chat_choice import Parser
from frontend_openai.conversation import prepared, prompt_of, sampling_of
from frontend_openai.document import read_object
from frontend_openai.errors import encodable_error, wrong
from frontend_openai.events import Usage
from frontend_openai.generation import Generation
from frontend_openai.models import TextModels
from frontend_openai.off_loop import off_loop
from frontend_openai.service import json_response, run
from frontend_openai.tokens import check_engine, tokenized
from frontends.http.errors import error_answer
from frontends.http.message import HttpRequest, HttpResponse

if TYPE_CHECKING:
    from core_generate.chat.requests import ChatRequest

    from core.request import InferenceRequest
    from core.server import InferenceServer
    from core.tensor import Buffer

_NAMES = {"stop": "stop_sequences"}
_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}


class _Counts(TypedDict):
    prompt_tokens: int
    tokens: int


async def messages(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Generate Anthropic's next message of a conversation, as one JSON object or as events."""
    request = await off_loop(len(call.body), _read, call.body)
    model, adapter = TextModels.of(server).find(request.model)
    call.captures = {"model": model.signature.name, "version": None}
    requests, parser = await off_loop(len(call.body), _prepare, request, model, adapter)
    usage = Usage(1)
    identifier = f"msg_{secrets.token_hex(12)}"
    if request.stream:
        maker = MessageEvents(identifier, request.model)

        def ending(finish: str, stop: str | None) -> list[dict[str, Any]]:
            return maker.end(finish, stop_sequence=stop, **_counts(usage))

        events = AnswerEvents(maker, usage, parser, ending)
        generation = Generation([events], model.output, bytes, _error_event)
        return await run(server, call, model, generation, requests, usage, None)
    answer = WholeAnswer(usage, parser)
    generation = Generation([answer], model.output, bytes, _error_event)

    def whole() -> dict[str, Any]:
        stop, counts = answer.stop, _counts(usage)
        parts = answer.parts
        return message(
            identifier, request.model, parts, answer.finish, stop_sequence=stop, **counts
        )

    return await run(server, call, model, generation, requests, usage, whole)


async def count_tokens(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Count the tokens of the prompt that one of Anthropic's requests makes, and generate nothing."""
    request = await off_loop(len(call.body), _read, call.body, counts_only=True)
    model, _ = TextModels.of(server).find(request.model)
    name = model.signature.name
    call.captures = {"model": name, "version": None}
    check_engine(name, model.info)
    prompt = await off_loop(
        len(call.body),
        prompt_of,
        request.conversation,
        model,
        request.tools,
        request.arguments,
        structured=request.tools.structure is not None,
    )
    if prompt.images or prompt.audio:
        raise wrong("messages", "the tokens of images and sound cannot be counted", "unsupported")
    found = await tokenized(server, call, name, prompt.text)
    return json_response({"input_tokens": len(found)})


def _read(data: Buffer, counts_only: bool = False) -> ChatRequest:
    return read_message_request(read_object(data), counts_only=counts_only)


def _prepare(
    request: ChatRequest, model: TextModel, adapter: str
) -> tuple[list[InferenceRequest], Parser | None]:
    """Return what `prepared` returns, and raise as it does; `adapter` is "" for none."""
    # `sampling_of` sets its tools, and a slow chat template lets this run twice.
    request = replace(request)
    sampling = sampling_of(request, adapter, 0, _NAMES)
    # Every request must have it: a model that cannot limit its text would be of no use here.
    sampling.sources.pop("max_tokens", None)
    _check_budget(request, model)
    return prepared(request, model, sampling)


def _check_budget(request: ChatRequest, model: TextModel) -> None:
    """Raise FieldError for a budget of thinking that the chat template of the model does not read."""
    if BUDGET in request.arguments and BUDGET not in model.info.template:
        raise wrong(
            "thinking.budget_tokens",
            f"the chat template of model '{model.signature.name}' has no variable {BUDGET}, so nothing would "
            'keep to it; send "thinking": {"type": "adaptive"}, and limit all tokens with max_tokens',
            "unsupported",
        )


def message_refusal(error: CoreError) -> HttpResponse:
    """Return the response for an error, in Anthropic's form."""
    answer = error_answer(error)
    answer.body = orjson.dumps(error_document(encodable_error(error)))
    return answer


def in_message_form(answer: HttpResponse) -> HttpResponse:
    """Return a refusal of the port, {"error": text}, in Anthropic's form; another response unchanged."""
    try:
        found = orjson.loads(answer.body)
    except orjson.JSONDecodeError:
        return answer
    text = found.get("error") if isinstance(found, dict) else None
    if isinstance(text, str):
        status = answer.status
        kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "api_error")
        answer.body = orjson.dumps({"type": "error", "error": {"type": kind, "message": text}})
    return answer


def _error_event(error: CoreError) -> bytes:
    return sse(error_document(error))


def _counts(usage: Usage) -> _Counts:
    """Return the counts; 0 for a model that does not count."""
    found = usage.members() or {"prompt_tokens": 0, "completion_tokens": 0}
    return {"prompt_tokens": found["prompt_tokens"], "tokens": found["completion_tokens"]}
