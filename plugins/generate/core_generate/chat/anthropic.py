"""Reads requests of Anthropic's messages into the form that all chats have here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.errors import CoreError, Kind
from core_generate.chat.fields import (
    FieldError,
    check,
    check_choice,
    check_names,
    check_text,
    get,
    join,
    need,
)
from core_generate.chat.media import read_base64
from core_generate.chat.messages import Conversation, check_list
from core_generate.chat.requests import ChatRequest, read_count, read_number
from core_generate.chat.tools import (
    Choice,
    Tools,
    check_count,
    check_known,
    check_unique,
    choice_of,
    read_function,
    tools_of,
)

_FIELDS = {"model", "messages", "max_tokens", "system", "stop_sequences", "stream", "temperature"}
_FIELDS |= {"top_k", "top_p", "tools", "tool_choice", "thinking", "metadata", "service_tier"}
_CHOICES = {"auto": "auto", "any": "required", "tool": "named", "none": "none"}
_HINTS = {"cache_control", "citations"}  # they change no text
BUDGET = "thinking_budget"  # name of the tokens for thinking in chat templates that limit them
_MEDIA_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")


def read_message_request(document: Any, *, counts_only: bool = False) -> ChatRequest:
    """Return the request that the parsed JSON body of POST /v1/messages makes.

    counts_only   whether the body is that of /v1/messages/count_tokens, where max_tokens may be absent and
                  is ignored
    Raises FieldError (INVALID) with the path of the wrong field.
    """
    check(document, dict, "body")
    check_names(document, _FIELDS, "")
    request = ChatRequest(need(document, "model", str, ""), Conversation())
    _read_sampling(document, request.sampling, counts_only)
    request.stream = bool(get(document, "stream", bool, ""))
    if document.get("system") is not None:
        content = _texts(document["system"], "system")
        request.conversation.messages.append({"role": "system", "content": content})
    messages = need(document, "messages", list, "")
    check_list(messages, "messages")
    for at, message in enumerate(messages):
        _read_message(
            check(message, dict, f"messages[{at}]"), request.conversation, f"messages[{at}]"
        )
    if thinking := get(document, "thinking", dict, ""):
        _read_thinking(thinking, request)
    request.tools = _read_tools(document)
    return request


def _read_thinking(thinking: Mapping[str, Any], request: ChatRequest) -> None:
    """Set the names for the chat template. Raises FieldError for a wrong field."""
    check_names(thinking, {"type", "budget_tokens", "display"}, "thinking")
    kind = check_choice(thinking.get("type"), ("enabled", "disabled", "adaptive"), "thinking.type")
    if get(thinking, "display", str, "thinking") not in (None, "summarized"):
        raise FieldError("thinking.display", "this server shows all thinking; leave it out")
    request.arguments["enable_thinking"] = kind != "disabled"
    budget = get(thinking, "budget_tokens", int, "thinking")
    if budget is None or kind == "disabled":
        return
    most = request.sampling.get("max_tokens")
    if budget < 1 or (most is not None and budget >= most):
        raise FieldError(
            "thinking.budget_tokens",
            f"expected at least 1 and less than max_tokens, found {budget}",
        )
    request.arguments[BUDGET] = budget


def _read_sampling(
    document: Mapping[str, Any], sampling: dict[str, Any], counts_only: bool
) -> None:
    if not counts_only:
        need(document, "max_tokens", int, "")
        read_count(document, "max_tokens", sampling)
    if (stop := get(document, "stop_sequences", list, "")) is not None:
        sampling["stop"] = [
            check_text(each, f"stop_sequences[{at}]") for at, each in enumerate(stop)
        ]
    if (top_k := get(document, "top_k", int, "")) is not None:
        sampling["top_k"] = top_k
    for name in ("temperature", "top_p"):
        read_number(document, name, sampling, most=1)


def _texts(value: Any, path: str) -> str | list[dict[str, Any]]:
    """Return a string as it is, and a list of blocks of text as parts of a message.

    Raises FieldError for another value, and for a block that is no text.
    """
    if isinstance(value, str):
        return check_text(value, path)
    parts = []
    for at, block in enumerate(check(value, list, path)):
        where = f"{path}[{at}]"
        check_choice(check(block, dict, where).get("type"), ("text",), join(where, "type"))
        parts.append({"type": "text", "text": need(block, "text", str, where)})
    return parts


def _read_message(message: Mapping[str, Any], conversation: Conversation, path: str) -> None:
    """Add one message of the request, which is of the role user or assistant, to the conversation.

    Each result of a tool in it becomes a message of the role tool, before the message of its other blocks;
    so no result may follow them. Without other blocks there is no such message. Raises FieldError for a wrong
    field.
    """
    role = check_choice(message.get("role"), ("user", "assistant"), join(path, "role"))
    check_names(message, {"role", "content"}, path)
    content = message.get("content")
    where = join(path, "content")
    if isinstance(content, str):
        conversation.messages.append({"role": role, "content": check_text(content, where)})
        return
    parts: list[dict[str, Any]] = []
    more: dict[str, Any] = {}
    for at, block in enumerate(check(content, list, where)):
        place = f"{where}[{at}]"
        check(block, dict, place)
        if role == "assistant":
            _read_own_block(block, parts, more, place)
        elif block.get("type") == "tool_result":
            if parts:
                raise FieldError(place, "a 'tool_result' must come before the other blocks")
            _read_result(block, conversation, place)
        else:
            parts.append(_part(block, conversation, place))
    if "reasoning_content" in more:
        more["reasoning_content"] = "".join(more["reasoning_content"])
    if parts or more:
        conversation.messages.append({"role": role, "content": parts or None, **more})


def _read_own_block(
    block: Mapping[str, Any], parts: list[dict[str, Any]], more: dict[str, Any], path: str
) -> None:
    """Read a block of an assistant's message. Raises FieldError for one of another kind.

    parts   gets a block of text
    more    `reasoning_content` in it gets the text of a block thinking, `tool_calls` the call of a block
            tool_use. A block redacted_thinking is ignored
    """
    kinds = ("text", "tool_use", "thinking", "redacted_thinking")
    kind = check_choice(block.get("type"), kinds, join(path, "type"))
    if kind == "text":
        parts.append({"type": "text", "text": need(block, "text", str, path)})
    elif kind == "thinking":
        more.setdefault("reasoning_content", []).append(need(block, "thinking", str, path))
    elif kind == "tool_use":
        function = {
            "name": need(block, "name", str, path),
            "arguments": need(block, "input", dict, path),
        }
        call = {"id": need(block, "id", str, path), "type": "function", "function": function}
        more.setdefault("tool_calls", []).append(call)


def _read_result(block: Mapping[str, Any], conversation: Conversation, path: str) -> None:
    check_names(block, {"type", "tool_use_id", "content", "is_error", *_HINTS}, path)
    content = block.get("content")
    where = join(path, "content")
    if content is None or isinstance(content, str):
        found: Any = check_text(content or "", where)
    else:
        blocks = enumerate(check(content, list, where))
        found = [
            _part(check(each, dict, f"{where}[{at}]"), conversation, f"{where}[{at}]")
            for at, each in blocks
        ]
    get(block, "is_error", bool, path)
    identifier = need(block, "tool_use_id", str, path)
    conversation.messages.append({"role": "tool", "tool_call_id": identifier, "content": found})


def _part(block: Mapping[str, Any], conversation: Conversation, path: str) -> dict[str, Any]:
    kind = check_choice(block.get("type"), ("text", "image", "tool_result"), join(path, "type"))
    if kind == "tool_result":
        raise FieldError(join(path, "type"), "'tool_result' cannot be within another block")
    check_names(block, {"type", "text" if kind == "text" else "source", *_HINTS}, path)
    if kind == "text":
        return {"type": "text", "text": need(block, "text", str, path)}
    source = need(block, "source", dict, path)
    where = join(path, "source")
    if source.get("type") == "url":
        raise FieldError(join(where, "type"), "this server fetches no URLs; send 'base64'")
    check_choice(source.get("type"), ("base64",), join(where, "type"))
    check_choice(source.get("media_type"), _MEDIA_TYPES, join(where, "media_type"))
    data = read_base64(need(source, "data", str, where), join(where, "data"))
    return conversation.add_image(data, join(where, "data"))


def _read_tools(document: Mapping[str, Any]) -> Tools:
    functions = []
    for at, tool in enumerate(check_count(get(document, "tools", list, "") or [], "tools")):
        where = f"tools[{at}]"
        check(tool, dict, where)
        check_choice(tool.get("type") or "custom", ("custom",), join(where, "type"))
        kept = {name: each for name, each in tool.items() if name not in {"type", *_HINTS}}
        functions.append(read_function(kept, where, "input_schema"))
    check_unique(functions, "tools")
    names = [each["function"]["name"] for each in functions]
    value = get(document, "tool_choice", dict, "")
    if value is None:
        choice: Choice = "auto" if names else "none"
        return tools_of(functions, choice, names, True)
    kind = _CHOICES[check_choice(value.get("type"), tuple(_CHOICES), "tool_choice.type")]
    parallel = not get(value, "disable_parallel_tool_use", bool, "tool_choice")
    if kind == "named":
        name = need(value, "name", str, "tool_choice")
        return tools_of(
            functions, "named", [check_known(name, names, "tool_choice.name")], parallel
        )
    choice, names = choice_of(kind, names, "tool_choice.type")
    return tools_of(functions, choice, names, parallel)


_ERRORS = {
    Kind.NOT_FOUND: "not_found_error",
    Kind.INVALID: "invalid_request_error",
    Kind.UNSUPPORTED: "invalid_request_error",
    Kind.UNAUTHENTICATED: "authentication_error",
    Kind.FORBIDDEN: "permission_error",
    Kind.EXHAUSTED: "rate_limit_error",
    Kind.UNAVAILABLE: "overloaded_error",
    Kind.DEADLINE_EXCEEDED: "timeout_error",
}


def error_document(error: CoreError) -> dict[str, Any]:
    """Return an error in Anthropic's form: the body of a response, or the event `error` of a stream."""
    kind = _ERRORS.get(error.kind, "api_error")
    return {"type": "error", "error": {"type": kind, "message": error.message}}
