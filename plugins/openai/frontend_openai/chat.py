"""POST /v1/chat/completions: the answer to a conversation.

messages, tools ─► chat template ─► prompt ─► n requests to the model ─► choices
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from core_generate.chat import Tools, read_messages, read_response_format, read_tools

from frontend_openai.adapter import Asked, Prompt, TextModel
from frontend_openai.chat_choice import ChatEvents, ChatMessage, Parser
from frontend_openai.completions import read_priority, read_stream, seeded, tail
from frontend_openai.conversation import name_chats, parser_maker, prompt_of
from frontend_openai.document import Document, read_document
from frontend_openai.errors import naming, wrong
from frontend_openai.events import Chunks, Head, Usage, error_event
from frontend_openai.generation import Generation
from frontend_openai.models import TextModels
from frontend_openai.off_loop import off_loop
from frontend_openai.options import OpenAIOptions
from frontend_openai.sampling import MOST_CHOICES, SamplingFields, read_sampling
from frontend_openai.service import run
from frontends.http.message import HttpRequest, HttpResponse

if TYPE_CHECKING:
    from core.request import InferenceRequest
    from core.server import InferenceServer

_MOST_LOGPROBS = 20
# They change nothing here, or name what this server does anyway.
_WITHOUT_EFFECT = (
    *("user", "metadata", "store", "safety_identifier", "prompt_cache_key"),
    *("prompt_cache_retention", "service_tier"),
)


@dataclass(slots=True)
class ChatFields:
    """What a chat asks for beside its prompt and its sampling."""

    n: int
    stream: bool
    usage: bool
    logprobs: int | None
    structure: str = ""  # field with what the text must match, for errors

    @property
    def counts(self) -> bool:
        """Return whether the tokens are counted."""
        return self.usage or not self.stream


async def chat_completions(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Generate the answer to a conversation, as one JSON object or as events."""
    document = await read_document(call.body)
    name = document.text("model")
    model, adapter = TextModels.of(server).find(name)
    call.captures = {"model": model.signature.name, "version": None}
    default = OpenAIOptions.of(server.options).openai_default_max_tokens
    fields, requests, parser = await off_loop(
        len(call.body), _read, document, model, adapter, default
    )
    usage = Usage(1, fields.counts)
    if fields.stream:
        head = Head("chatcmpl", "chat.completion.chunk", name or "")
        chunks = Chunks(head, fields.usage)
        events = [
            ChatEvents(chunks, index, usage, parser(), fields.logprobs) for index in range(fields.n)
        ]
        generation = Generation(
            events, model.output, lambda: tail(chunks, usage, fields.usage), error_event
        )
        with naming("messages", fields.structure):
            return await run(server, call, model, generation, requests, usage, None)
    head = Head("chatcmpl", "chat.completion", name or "")
    texts = [ChatMessage(index, usage, parser(), fields.logprobs) for index in range(fields.n)]
    generation = Generation(texts, model.output, bytes, error_event)

    def whole() -> dict[str, Any]:
        members = [each.members() for each in texts]
        return {**head.members, "choices": members, "usage": usage.members()}

    with naming("messages", fields.structure):
        return await run(server, call, model, generation, requests, usage, whole)


def _read(
    document: Document, model: TextModel, adapter: str, default: int
) -> tuple[ChatFields, list[InferenceRequest], Callable[[], Parser | None]]:
    """Read all fields. Return them, the requests to the model, and what makes a parser of a text.

    adapter   "" for none
    default   tokens at most without a field for them, 0 for none
    Raises CoreError(INVALID) for a wrong field, and for what the model cannot do.
    """
    document = document.copy()  # a slow chat template lets this run twice
    sampling = read_sampling(document, default, chat=True)
    fields = _read_fields(document, sampling)
    sampling.set("lora_name", adapter or None, "model")
    priority = read_priority(document, model)
    parallel = document.take("parallel_tool_calls")
    tools = read_tools(document.take("tools"), document.take("tool_choice"), parallel)
    answer = read_response_format(document.take("response_format"))
    tools = sampling.set_structures(tools, answer, "response_format")
    fields.structure = sampling.sources.get("structured_outputs", "")
    prompt = _read_prompt(document, model, tools, sampling.structured)
    document.ignore(_WITHOUT_EFFECT)
    document.end()
    model.check(prompt, sampling)
    asked = Asked(fields.stream, fields.counts, fields.logprobs is not None, priority=priority)
    samplings = [seeded(sampling, number) for number in range(fields.n)]
    requests = model.requests(prompt, samplings, asked)
    name_chats(requests, model)
    return fields, requests, parser_maker(model, tools, prompt, sampling.structured)


def _read_fields(document: Document, sampling: SamplingFields) -> ChatFields:
    stream, usage = read_stream(document)
    n = document.integer("n", 1, MOST_CHOICES) or 1
    wanted = document.flag("logprobs") or False
    top = document.integer("top_logprobs", 0, _MOST_LOGPROBS)
    if top is not None and not wanted:
        raise wrong("top_logprobs", "can only be used when logprobs is true")
    if wanted:
        sampling.set("logprobs", top or 0)
    modalities = document.take("modalities")
    if modalities not in (None, ["text"]):
        raise wrong("modalities", 'this server generates text: expected ["text"]', "unsupported")
    return ChatFields(n, stream, usage, (top or 0) if wanted else None)


def _read_prompt(document: Document, model: TextModel, tools: Tools, structured: bool) -> Prompt:
    messages = document.take("messages")
    conversation = read_messages(messages)
    arguments = document.take("chat_template_kwargs") or {}
    if type(arguments) is not dict:
        raise wrong("chat_template_kwargs", "expected an object")
    return prompt_of(conversation, model, tools, arguments, messages, structured=structured)
