"""Chooses the parser of a generated text, by the chat template and by what the request asks for."""

from __future__ import annotations

import secrets
import string
from collections.abc import Callable

from core_generate.chat.calls import FAMILIES, CallsParser, family_of
from core_generate.chat.parser import ArgumentsParser, ToolCallParser, new_call_id
from core_generate.chat.reasoning import ReasoningParser
from core_generate.chat.tools import Tools

_REASONING = (("<think>", "</think>"), ("[THINK]", "[/THINK]"))
_LETTERS = string.ascii_letters + string.digits


def parser_of(
    template_or_name: str,
    tools: Tools | None = None,
    *,
    prompt: str = "",
    structured: bool = False,
    new_id: Callable[[], str] | None = None,
) -> ToolCallParser:
    """Return the parser of one generated text.

    template_or_name   the chat template of the model, or a name: hermes, qwen, smollm2, llama3, mistral, …
    tools              what the request lets the model call; None for nothing
    prompt             the prompt; if it ends with <think> or [THINK], the text begins with reasoning
    structured         whether the text must match a structure of the request: then it is all content
    new_id             returns a new identifier for each call; None for the parser's own
    With tools.structure, the text is nothing but calls, or an answer if the choice is "auto": the parser
    expects no marker of the template, and no reasoning.
    """
    family = family_of(template_or_name)
    # Mistral's templates take only such identifiers back.
    make_id = new_id or (_new_short_id if family == "mistral" else new_call_id)
    if tools is not None and tools.structure is not None:
        if tools.choice == "named":
            return ArgumentsParser(tools.name, make_id)
        return CallsParser(FAMILIES["json"], tools, make_id)
    if structured:
        return ToolCallParser()
    parser = ToolCallParser()
    if tools is not None and tools.functions:
        parser = CallsParser(FAMILIES[family], tools, make_id)
    for begin, end in _REASONING:
        is_begun = prompt.rstrip().endswith(begin)
        if is_begun or begin in template_or_name:
            return ReasoningParser(parser, begin, end, is_begun=is_begun)
    return parser


def without_reasoning(prompt: str) -> str:
    """Return a prompt whose text begins with the answer: <think> or [THINK] at its end is closed.

    For a text that must match a structure, which permits no reasoning before it.
    """
    begun = prompt.rstrip()
    for begin, end in _REASONING:
        if begun.endswith(begin):
            return f"{begun}\n\n{end}\n\n"
    return prompt


def _new_short_id() -> str:
    """Return an identifier as the templates of Mistral need it: nine letters and digits."""
    return "".join(secrets.choice(_LETTERS) for _ in range(9))
