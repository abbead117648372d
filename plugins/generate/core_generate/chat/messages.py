"""Reads the `messages` of OpenAI's chat: messages for a chat template, images and sound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
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
    parse,
    shown,
)
from core_generate.chat.media import check_audio, check_image, read_base64, read_url

MOST_MESSAGES = 10_000
MOST_MEDIA = 128  # images and sounds of one conversation

ROLES = ("system", "developer", "user", "assistant", "tool")

# Fields that clients copy from responses into messages, and hints for other servers: they change no text.
_WITHOUT_MEANING = {"annotations", "cache_control", "provider_specific_fields", "refusal"}
_FIELDS = {"role", "content", "name"} | _WITHOUT_MEANING
_MORE_FIELDS = {
    "assistant": {"tool_calls", "reasoning_content", "reasoning"},
    "tool": {"tool_call_id"},
}


@dataclass(slots=True)
class Conversation:
    """What a chat template is applied to.

    messages   each has `role` and `content`: text, None, or a list of {"type": "text", "text": …},
               {"type": "image"} and {"type": "audio"}; it may have name, tool_calls, tool_call_id and
               reasoning_content. The arguments of a call are an object
    images     files of images, in the order of their places in the messages
    audio      files of sound, in the order of their places in the messages
    """

    messages: list[dict[str, Any]] = field(default_factory=list)
    images: list[bytes] = field(default_factory=list)
    audio: list[bytes] = field(default_factory=list)

    def add_image(self, data: bytes, path: str) -> dict[str, Any]:
        """Add the file of an image. Return the part of a message's content that stands for it.

        Raises FieldError with `path` if `check_image` does, or if there are already MOST_MEDIA files.
        """
        self._check_count(path)
        self.images.append(check_image(data, path))
        return {"type": "image"}

    def add_audio(self, data: bytes, path: str) -> dict[str, Any]:
        """Add a file of sound. Return the part of a message's content that stands for it.

        Raises FieldError with `path` if `check_audio` does, or if there are already MOST_MEDIA files.
        """
        self._check_count(path)
        self.audio.append(check_audio(data, path))
        return {"type": "audio"}

    def _check_count(self, path: str) -> None:
        if len(self.images) + len(self.audio) >= MOST_MEDIA:
            raise FieldError(path, f"a request may have at most {MOST_MEDIA} images and sounds")


def read_messages(document: Any, path: str = "messages") -> Conversation:
    """Return the conversation of a list of messages in OpenAI's form.

    Raises FieldError (INVALID) with the path of the wrong field, such as messages[2].content[0].text.
    """
    check_list(document, path)
    conversation = Conversation()
    for at, each in enumerate(document):
        where = f"{path}[{at}]"
        conversation.messages.append(_message(check(each, dict, where), conversation, where))
    return conversation


def check_list(document: Any, path: str) -> None:
    """Raise FieldError unless a document is a list of 1 to MOST_MESSAGES messages."""
    check(document, list, path)
    if not 0 < len(document) <= MOST_MESSAGES:
        raise FieldError(path, f"expected 1 to {MOST_MESSAGES:,} messages, found {len(document):,}")


def _message(document: Mapping[str, Any], conversation: Conversation, path: str) -> dict[str, Any]:
    role = document.get("role")
    if role == "function":
        raise FieldError(join(path, "role"), "'function' is no longer used; send the role 'tool'")
    check_choice(role, ROLES, join(path, "role"))
    if document.get("function_call") is not None:
        raise FieldError(join(path, "function_call"), "no longer used; send 'tool_calls'")
    check_names(document, _FIELDS | _MORE_FIELDS.get(str(role), set()), path)
    message: dict[str, Any] = {"role": role, "content": None}
    if name := get(document, "name", str, path):
        message["name"] = name
    calls = document.get("tool_calls")
    if calls:
        message["tool_calls"] = read_calls(calls, join(path, "tool_calls"))
    if document.get("content") is not None:
        message["content"] = _content(document["content"], conversation, join(path, "content"))
    elif role != "assistant":
        raise FieldError(
            join(path, "content"), "the field is required: a string or a list of parts"
        )
    for name in ("reasoning_content", "reasoning"):
        if text := get(document, name, str, path):
            message["reasoning_content"] = text
    if role == "tool":
        message["tool_call_id"] = need(document, "tool_call_id", str, path)
    return message


def _content(value: Any, conversation: Conversation, path: str) -> str | list[dict[str, Any]]:
    if isinstance(value, str):
        return check_text(value, path)
    if not isinstance(value, list):
        raise FieldError(path, f"expected a string or a list of parts, found {shown(value)}")
    return [
        _part(check(part, dict, f"{path}[{at}]"), conversation, f"{path}[{at}]")
        for at, part in enumerate(value)
    ]


def _part(part: Mapping[str, Any], conversation: Conversation, path: str) -> dict[str, Any]:
    kind = check_choice(
        part.get("type"),
        ("text", "image_url", "input_audio", "audio_url", "refusal"),
        join(path, "type"),
    )
    check_names(part, {"type", kind, *_WITHOUT_MEANING}, path)
    if kind in ("text", "refusal"):
        return {"type": "text", "text": need(part, kind, str, path)}
    where = join(path, kind)
    document: Any = part.get(kind)
    if kind == "input_audio":
        check(document, dict, where)
        data = read_base64(need(document, "data", str, where), join(where, "data"))
        check_choice(document.get("format"), ("wav", "mp3"), join(where, "format"))
        return conversation.add_audio(data, join(where, "data"))
    if isinstance(document, str):  # a shorter form that some clients send
        url = check_text(document, where)
    else:
        check(document, dict, where)
        url, where = need(document, "url", str, where), join(where, "url")
    if kind == "audio_url":
        return conversation.add_audio(read_url(url, "audio", where), where)
    if isinstance(document, dict) and document.get("detail") is not None:
        detail = f"{path}.{kind}.detail"
        check_choice(document["detail"], ("auto", "low", "high", "original"), detail)
    return conversation.add_image(read_url(url, "image", where), where)


def read_calls(document: Any, path: str) -> list[dict[str, Any]]:
    """Return the field `tool_calls` of an assistant's message, each call with its arguments as an object.

    A call without an id gets call_0, call_1, …, its place in the list. Raises FieldError for a wrong field.
    """
    calls = []
    for at, call in enumerate(check(document, list, path)):
        where = f"{path}[{at}]"
        check(call, dict, where)
        if call.get("type") is not None:
            check_choice(call["type"], ("function",), join(where, "type"))
        function = need(call, "function", dict, where)
        where = join(where, "function")
        arguments = read_arguments(function.get("arguments"), join(where, "arguments"))
        calls.append(
            {
                "id": get(call, "id", str, f"{path}[{at}]") or f"call_{at}",
                "type": "function",
                "function": {"name": need(function, "name", str, where), "arguments": arguments},
            }
        )
    return calls


def read_arguments(value: Any, path: str) -> dict[str, Any]:
    """Return the arguments of a call as an object: an object as it is, JSON text parsed, {} for None or "".

    Raises FieldError for other values, and for text that is no JSON object.
    """
    if value is None or value == "":
        return {}
    if isinstance(value, dict):
        return value
    arguments: dict[str, Any] = check(parse(value, path), dict, path)
    return arguments
