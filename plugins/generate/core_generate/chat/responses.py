"""Reads requests of OpenAI's Responses into the form that all chats have here. No response is stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core_generate.chat.fields import (
    FieldError,
    check,
    check_choice,
    check_names,
    check_text,
    get,
    join,
    need,
    shown,
)
from core_generate.chat.media import read_url
from core_generate.chat.messages import Conversation, check_list, read_arguments
from core_generate.chat.requests import ChatRequest, read_count, read_number
from core_generate.chat.structure import read_json_schema
from core_generate.chat.tools import (
    Tools,
    check_count,
    check_known,
    check_unique,
    choice_of,
    read_function,
    tools_of,
)
from core_generate.engine import Structure

_FIELDS = {"model", "input", "instructions", "max_output_tokens", "temperature", "top_p", "stream"}
_FIELDS |= {"tools", "tool_choice", "parallel_tool_calls", "text", "reasoning"}
# They change no answer here: all tiers are one.
_LABELS = ("user", "service_tier", "safety_identifier", "prompt_cache_key")
_FIELDS |= {"metadata", *_LABELS}
_MOST_METADATA = 16  # names, as OpenAI has it
_MOST_NAME = 64  # characters of each
_MOST_TEXT = 512  # characters of a value of metadata, and of a label
# Accepted with the value that changes nothing.
_ONLY: dict[str, tuple[Any, ...]] = {
    "background": (False,),
    "include": ([],),
    "store": (False,),
    "stream_options": ({}, {"include_obfuscation": False}),
    "top_logprobs": (0,),
    "truncation": ("disabled",),
}
_STORED = ("previous_response_id", "conversation", "prompt")
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")


def read_response_request(document: Any) -> ChatRequest:
    """Return the request that the parsed JSON body of POST /v1/responses makes.

    Raises FieldError (INVALID) with the path of the wrong field.
    """
    check(document, dict, "body")
    for name in _STORED:
        if document.get(name) is not None:
            raise FieldError(name, "this server stores no responses; send the whole conversation")
    for name, values in _ONLY.items():
        if document.get(name) is not None and document[name] not in values:
            raise FieldError(name, f"not supported here: {shown(document[name])}; leave it out")
    check_names(document, _FIELDS | _ONLY.keys(), "")
    _check_labels(document)
    request = ChatRequest(need(document, "model", str, ""), Conversation())
    read_count(document, "max_output_tokens", request.sampling, "max_tokens")
    read_number(document, "temperature", request.sampling, most=2)
    read_number(document, "top_p", request.sampling, most=1)
    request.stream = bool(get(document, "stream", bool, ""))
    if instructions := get(document, "instructions", str, ""):
        request.conversation.messages.append({"role": "system", "content": instructions})
    _Input(request.conversation).read(document.get("input"))
    request.tools = _read_tools(document)
    request.structure = _read_text(get(document, "text", dict, "") or {})
    _read_reasoning(get(document, "reasoning", dict, "") or {}, request.arguments)
    return request


def _check_labels(document: Mapping[str, Any]) -> None:
    """Raise FieldError unless the fields that label a request are short texts: the response repeats them."""
    for name in _LABELS:
        _check_length(get(document, name, str, "") or "", _MOST_TEXT, name)
    metadata = get(document, "metadata", dict, "") or {}
    if len(metadata) > _MOST_METADATA:
        raise FieldError(
            "metadata", f"expected at most {_MOST_METADATA} names, found {len(metadata):,}"
        )
    for name in metadata:
        _check_length(name, _MOST_NAME, "metadata")
        _check_length(need(metadata, name, str, "metadata"), _MOST_TEXT, f"metadata.{name}")


def _check_length(text: str, most: int, path: str) -> None:
    if len(text) > most:
        raise FieldError(path, f"expected at most {most} characters, found {len(text):,}")


class _Input:
    """Reads the field `input`, a text or a list of items, and adds its messages to a conversation.

    An assistant's items that follow each other become one message with its reasoning, one text and calls. An
    item of reasoning, or a second text, begins a new message.
    """

    def __init__(self, conversation: Conversation):
        self._conversation = conversation
        self._messages = conversation.messages
        self._own: dict[str, Any] | None = None  # the assistant's message that calls are added to

    def read(self, value: Any) -> None:
        if isinstance(value, str):
            self._messages.append({"role": "user", "content": check_text(value, "input")})
            return
        check_list(value, "input")
        for at, item in enumerate(value):
            path = f"input[{at}]"
            check(item, dict, path)
            kinds = ("message", "function_call", "function_call_output", "reasoning")
            kind = check_choice(item.get("type") or "message", kinds, join(path, "type"))
            if kind == "message":
                self._message(item, path)
            elif kind == "function_call":
                self._call(item, path)
            elif kind == "reasoning":
                self._reasoning(item, path)
            else:
                self._output(item, path)

    def _assistant(self) -> dict[str, Any]:
        if self._own is None:
            self._own = {"role": "assistant", "content": None}
            self._messages.append(self._own)
        return self._own

    def _message(self, item: Mapping[str, Any], path: str) -> None:
        roles = ("system", "developer", "user", "assistant")
        role = check_choice(item.get("role"), roles, join(path, "role"))
        check_names(item, {"type", "role", "content", "id", "status", "phase"}, path)
        content = self._content(item.get("content"), join(path, "content"))
        if role != "assistant":
            self._own = None
            self._messages.append({"role": role, "content": content})
            return
        if self._own is not None and self._own["content"] is not None:
            self._own = None
        self._assistant()["content"] = content

    def _call(self, item: Mapping[str, Any], path: str) -> None:
        arguments = read_arguments(item.get("arguments"), join(path, "arguments"))
        function = {"name": need(item, "name", str, path), "arguments": arguments}
        call = {"id": need(item, "call_id", str, path), "type": "function", "function": function}
        self._assistant().setdefault("tool_calls", []).append(call)

    def _reasoning(self, item: Mapping[str, Any], path: str) -> None:
        self._own = None
        texts = []
        for at, part in enumerate(get(item, "content", list, path) or []):
            where = f"{path}.content[{at}]"
            texts.append(need(check(part, dict, where), "text", str, where))
        if texts:
            self._assistant()["reasoning_content"] = "".join(texts)

    def _output(self, item: Mapping[str, Any], path: str) -> None:
        self._own = None
        content = self._content(item.get("output"), join(path, "output"))
        identifier = need(item, "call_id", str, path)
        self._messages.append({"role": "tool", "tool_call_id": identifier, "content": content})

    def _content(self, value: Any, path: str) -> str | list[dict[str, Any]]:
        if isinstance(value, str):
            return check_text(value, path)
        parts = enumerate(check(value, list, path))
        return [
            self._part(check(each, dict, f"{path}[{at}]"), f"{path}[{at}]") for at, each in parts
        ]

    def _part(self, part: Mapping[str, Any], path: str) -> dict[str, Any]:
        kinds = ("input_text", "output_text", "text", "refusal", "input_image")
        kind = check_choice(part.get("type"), kinds, join(path, "type"))
        if kind == "input_image":
            where = join(path, "image_url")
            if part.get("file_id") is not None:
                raise FieldError(
                    join(path, "file_id"), "this server stores no files; send image_url"
                )
            url = read_url(need(part, "image_url", str, path), "image", where)
            return self._conversation.add_image(url, where)
        name = "refusal" if kind == "refusal" else "text"
        return {"type": "text", "text": need(part, name, str, path)}


def _read_tools(document: Mapping[str, Any]) -> Tools:
    functions = []
    for at, tool in enumerate(check_count(get(document, "tools", list, "") or [], "tools")):
        where = f"tools[{at}]"
        check_choice(check(tool, dict, where).get("type"), ("function",), join(where, "type"))
        kept = {name: each for name, each in tool.items() if name != "type"}
        functions.append(read_function(kept, where))
    check_unique(functions, "tools")
    names = [each["function"]["name"] for each in functions]
    parallel = get(document, "parallel_tool_calls", bool, "") is not False
    value = document.get("tool_choice")
    if isinstance(value, dict):
        check_choice(value.get("type"), ("function",), "tool_choice.type")
        name = check_known(need(value, "name", str, "tool_choice"), names, "tool_choice.name")
        return tools_of(functions, "named", [name], parallel)
    kinds = ("none", "auto", "required")
    kind = "auto" if value is None else check_choice(value, kinds, "tool_choice")
    choice, names = choice_of(kind, names, "tool_choice")
    return tools_of(functions, choice, names, parallel)


def _read_text(document: Mapping[str, Any]) -> Structure | None:
    check_names(document, {"format", "verbosity"}, "text")
    if document.get("verbosity") is not None:
        check_choice(document["verbosity"], ("medium",), "text.verbosity")
    form = get(document, "format", dict, "text")
    if form is None:
        return None
    where = "text.format"
    kinds = ("text", "json_object", "json_schema")
    kind = check_choice(form.get("type"), kinds, join(where, "type"))
    if kind == "json_schema":
        return read_json_schema(
            {name: each for name, each in form.items() if name != "type"}, where
        )
    return Structure(schema=True) if kind == "json_object" else None


def _read_reasoning(document: Mapping[str, Any], arguments: dict[str, Any]) -> None:
    check_names(document, {"effort", "summary"}, "reasoning")
    if document.get("summary") is not None:
        check_choice(document["summary"], ("auto",), "reasoning.summary")
    if document.get("effort") is not None:
        effort = check_choice(document["effort"], _EFFORTS, "reasoning.effort")
        arguments["reasoning_effort"] = effort
        arguments["enable_thinking"] = effort not in ("none", "minimal")
