"""POST /tokenize and /detokenize, in vLLM's form, over models of engines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import orjson
from core_generate.chat import read_messages, read_tools

from frontend_openai.adapter import TextModel
from frontend_openai.conversation import prompt_of
from frontend_openai.document import Document, read_document
from frontend_openai.engine_info import EngineInfo, info_of
from frontend_openai.errors import wrong
from frontend_openai.models import TextModels
from frontend_openai.off_loop import off_loop
from frontend_openai.sampling import is_tokens
from frontend_openai.service import json_response
from frontend_openai.tokens import check_engine, detokenized, tokenized
from frontends.http.message import JSON_HEADERS, HttpRequest, HttpResponse

if TYPE_CHECKING:
    from core.server import InferenceServer

_PART = 65_536  # tokens that are written in some milliseconds
MOST_TOKEN_STRINGS = 4096  # the engine is asked for each one


async def tokenize(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return the tokens of a prompt or of a conversation."""
    document = await read_document(call.body)
    name, info = _read_model(server, document)
    call.captures = {"model": name, "version": None}
    text = await _read_text(server, call, document, name)
    special = document.flag("add_special_tokens")
    wants_strings = document.flag("return_token_strs") or False
    document.end()
    tokens = await tokenized(server, call, name, text, special is not False)
    strings = None
    if wants_strings:
        if len(tokens) > MOST_TOKEN_STRINGS:
            raise wrong(
                "return_token_strs",
                f"the text has {len(tokens)} tokens; at most {MOST_TOKEN_STRINGS} are accepted",
            )
        strings = await _strings(server, call, name, tokens.tolist())
    data = await off_loop(tokens.nbytes, _document, tokens, info.context, strings)
    return HttpResponse(200, JSON_HEADERS, data)


def _document(tokens: Any, context: int, strings: list[str] | None) -> bytes:
    """Return the response as JSON. Part by part: orjson holds the GIL while it writes."""
    head = orjson.dumps({"count": len(tokens), "max_model_len": context or None})
    parts = b",".join(
        orjson.dumps(tokens[at : at + _PART], option=orjson.OPT_SERIALIZE_NUMPY)[1:-1]
        for at in range(0, len(tokens), _PART)
    )
    return b'%b,"tokens":[%b],%b' % (head[:-1], parts, orjson.dumps({"token_strs": strings})[1:])


async def detokenize(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return the text of tokens."""
    document = await read_document(call.body)
    name, _ = _read_model(server, document)
    call.captures = {"model": name, "version": None}
    tokens = document.take("tokens")
    document.end()
    if not tokens or not await off_loop(len(call.body), is_tokens, tokens):
        raise wrong("tokens", "expected a list of tokens, which are numbers from 0 on")
    return json_response({"prompt": await detokenized(server, call, name, tokens)})


def _read_model(server: InferenceServer, document: Document) -> tuple[str, EngineInfo]:
    """Return the name of a model of an engine, of any task, and its facts.

    An adapter has the tokens of its model.
    """
    name = document.text("model") or ""
    if not server.models.knows(name):
        name = TextModels.of(server).find(name)[0].signature.name
    info = info_of(server.models.config(name))
    check_engine(name, info)
    return name, info


async def _read_text(
    server: InferenceServer, call: HttpRequest, document: Document, name: str
) -> str:
    """Return the field `prompt`, or the text that the chat template makes of `messages`."""
    text = document.text("prompt")
    messages = document.take("messages")
    if (text is None) == (messages is None):
        raise wrong("prompt", "expected one of prompt and messages")
    if text is not None:
        return text
    model, _ = TextModels.of(server).find(name)
    arguments = document.take("chat_template_kwargs") or {}
    if type(arguments) is not dict:
        raise wrong("chat_template_kwargs", "expected an object")
    for field in ("add_generation_prompt", "continue_final_message"):
        if (value := document.flag(field)) is not None:
            arguments = {**arguments, field: value}
    tools = document.take("tools")
    return await off_loop(len(call.body), _rendered, messages, tools, arguments, model)


def _rendered(messages: Any, tools: Any, arguments: Mapping[str, Any], model: TextModel) -> str:
    prompt = prompt_of(read_messages(messages), model, read_tools(tools), arguments)
    if prompt.images or prompt.audio:
        raise wrong("messages", "the tokens of images and sound cannot be counted", "unsupported")
    return prompt.text


async def _strings(
    server: InferenceServer, call: HttpRequest, name: str, tokens: list[int]
) -> list[str]:
    """Return the text of each token; the engine is asked once for equal tokens."""
    known: dict[int, str] = {}
    for token in tokens:
        if token not in known:
            known[token] = await detokenized(server, call, name, [token])
    return [known[token] for token in tokens]
