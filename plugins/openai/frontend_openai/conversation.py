"""What all routes for conversations share: the prompt by the chat template, and the parser of the text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson
from core_generate.chat import TEMPLATES, Conversation, Tools, parser_of, render, without_reasoning
from core_generate.chat.requests import ChatRequest
from core_generate.spans import CHAT, OPERATION

from core.errors import invalid
from frontend_openai.adapter import Asked, Prompt, TextModel
from frontend_openai.chat_choice import Parser
from frontend_openai.errors import wrong
from frontend_openai.message_files import messages_with_files, texts_of
from frontend_openai.sampling import MOST_STOPS, MOST_TOKENS, SamplingFields

if TYPE_CHECKING:
    from core.request import InferenceRequest

_PROMPT_END = 64  # characters at the end of a prompt, which say how its text begins


def prompt_of(
    conversation: Conversation,
    model: TextModel,
    tools: Tools,
    arguments: Mapping[str, Any],
    messages: Any = None,
    *,
    structured: bool = False,
) -> Prompt:
    """Return the prompt that a conversation makes.

    arguments   names for the chat template
    messages    of the request, for a model with an input for them; None for those of the conversation, with
                their files in them, in OpenAI's form
    structured  whether the text must match a structure: the prompt then leaves no room for reasoning
    Raises CoreError(INVALID) if the model has no chat template.
    """
    text = _prompt_text(conversation, model, tools, arguments)
    if structured:
        text = without_reasoning(text)
    whole = b""
    if model.takes_messages:
        whole = orjson.dumps(messages_with_files(conversation) if messages is None else messages)
    given = _given_tools(model, tools)
    return Prompt(
        text, images=conversation.images, audio=conversation.audio, messages=whole, tools=given
    )


def _given_tools(model: TextModel, tools: Tools) -> bytes:
    """Return the tools for a model with an input for them, b"" for another model.

    Raises FieldError if they would reach the model neither so nor by a chat template.
    """
    if not tools.functions:
        return b""
    if model.takes_tools:
        return orjson.dumps(tools.functions)
    if model.takes_messages and not model.info.template:
        raise wrong(
            "tools",
            f"model '{model.signature.name}' takes the messages of a chat, but no tools: it needs an "
            "optional BYTES input 'tools', or the parameter chat_template",
            "unsupported",
        )
    return b""


def _prompt_text(
    conversation: Conversation, model: TextModel, tools: Tools, arguments: Mapping[str, Any]
) -> str:
    info = model.info
    template = info.template
    if not template:
        if info.is_engine:
            raise invalid(
                f"model '{model.signature.name}' has no chat template; use /v1/completions, or write the "
                "parameter chat_template into its configuration"
            )
        if model.takes_messages:
            return ""
        # Files reach such a model by inputs of their own, and have no place in its text.
        conversation = texts_of(conversation)
        if len(conversation.messages) == 1 and not tools.functions:
            return conversation.messages[0]["content"] or ""
        template = TEMPLATES["plain"]
    functions = tools.functions or None
    return render(
        template,
        conversation,
        functions,
        bos=info.bos,
        eos=info.eos,
        arguments=arguments,
        media_marker=info.marker,
    )


def parser_maker(
    model: TextModel, tools: Tools, prompt: Prompt, structured: bool
) -> Callable[[], Parser | None]:
    """Return a function that returns a parser of a text; None if the text is nothing but content.

    structured   as of prompt_of
    """
    # Only its end matters; copies of a long one would take milliseconds for each text.
    end = prompt.text.rstrip()[-_PROMPT_END:]

    def made() -> Parser | None:
        parser = parser_of(model.info.template, tools, prompt=end, structured=structured)
        return None if parser.plain else parser

    return made


def sampling_of(
    request: ChatRequest, adapter: str, default_max_tokens: int, names: Mapping[str, str]
) -> SamplingFields:
    """Return the sampling of a request that core_generate.chat has read.

    adapter              "" for none
    default_max_tokens   0 for none
    names                field of the sampling → the request's own name for it, where they differ
    The request gets the tools for the parser of its text.
    Raises FieldError for too many tokens or stop strings, and for two forms that the text must match.
    """
    found = SamplingFields()
    for name, value in request.sampling.items():
        source = names.get(name, name)
        if name == "max_tokens" and value > MOST_TOKENS:
            raise wrong(source, f"{value} is not from 1 to {MOST_TOKENS}")
        if name == "top_k" and not -1 <= value <= MOST_TOKENS:
            raise wrong(source, f"{value} is not from -1 to {MOST_TOKENS}")
        if name == "stop" and len(value) > MOST_STOPS:
            raise wrong(source, f"{len(value)} strings; at most {MOST_STOPS} are accepted")
        if value != []:
            found.set(name, value, source)
    if default_max_tokens and "max_tokens" not in found.values:
        found.values["max_tokens"] = default_max_tokens
    found.set("lora_name", adapter or None, "model")
    source = names.get("structure", "structure")
    request.tools = found.set_structures(request.tools, request.structure, source)
    return found


def prepared(
    request: ChatRequest, model: TextModel, sampling: SamplingFields
) -> tuple[list[InferenceRequest], Parser | None]:
    """Return the request to the model that a ChatRequest becomes, in a list, and the parser of its text.

    sampling   of the request, by sampling_of
    Raises CoreError(INVALID) for what the model cannot do.
    """
    prompt = prompt_of(
        request.conversation,
        model,
        request.tools,
        request.arguments,
        structured=sampling.structured,
    )
    model.check(prompt, sampling)
    requests = model.requests(prompt, [sampling], Asked(request.stream, usage=True))
    name_chats(requests, model)
    return requests, parser_maker(model, request.tools, prompt, sampling.structured)()


def name_chats(requests: Sequence[InferenceRequest], model: TextModel) -> None:
    """Let traces name the requests to an engine as chats. Other models would see a parameter of no use."""
    if model.info.is_engine:
        for request in requests:
            request.parameters[OPERATION] = CHAT
