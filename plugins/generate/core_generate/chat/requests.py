"""A request for a chat, whatever its protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from core_generate.chat.fields import FieldError, get, shown
from core_generate.chat.messages import Conversation
from core_generate.chat.tools import Tools
from core_generate.engine import Structure


@dataclass(slots=True)
class ChatRequest:
    """What the body of a request for a chat asks for.

    model       name of the model
    structure   what the answer must match, None for anything; what calls must match is in tools.structure
    sampling    the fields that the request sets, with the names of OpenAI's chat: max_tokens, temperature,
                top_p, top_k, stop
    arguments   names for the chat template, such as enable_thinking
    stream      whether the answer is a stream of events
    """

    model: str
    conversation: Conversation
    tools: Tools = field(default_factory=Tools)
    structure: Structure | None = None
    sampling: dict[str, Any] = field(default_factory=dict)
    arguments: dict[str, Any] = field(default_factory=dict)
    stream: bool = False


def read_number(
    document: Mapping[str, Any], name: str, into: dict[str, Any], *, most: float
) -> None:
    """Copy the field `name` of a document into `into`, unless it is absent or null.

    Raises FieldError unless it is a number from 0 to `most`.
    """
    value = get(document, name, float, "")
    if value is None:
        return
    if not 0 <= value <= most:
        raise FieldError(name, f"expected a number from 0 to {most:g}, found {shown(value)}")
    into[name] = value


def read_count(
    document: Mapping[str, Any], name: str, into: dict[str, Any], as_name: str = ""
) -> None:
    """Copy the field `name` of a document into `into`, unless it is absent or null.

    as_name   its name in `into`; "" for the same
    Raises FieldError unless it is an integer of at least 1.
    """
    value = get(document, name, int, "")
    if value is None:
        return
    if value < 1:
        raise FieldError(name, f"expected at least 1, found {value}")
    into[as_name or name] = value
