"""Chat: requests of OpenAI and Anthropic, chat templates, tools and structured output. No server.

messages ─► read_messages ─► render ─► Prompt ─► engine ─► texts ─► parser_of(…).feed ─► pieces
tools, response_format ─► read_tools, read_response_format ─► Structure ──┘

All errors about a request are FieldError (INVALID), with the path of the field.
"""

from core_generate.chat.fields import FieldError
from core_generate.chat.messages import Conversation, read_messages
from core_generate.chat.parser import ToolCallParser
from core_generate.chat.parsers import parser_of, without_reasoning
from core_generate.chat.pieces import (
    Call,
    CallArguments,
    CallBegin,
    Content,
    Piece,
    Reasoning,
    Whole,
    joined,
)
from core_generate.chat.quick import SlowTemplate, quick_only
from core_generate.chat.structure import mismatch, read_response_format, read_structured_outputs
from core_generate.chat.templates import TEMPLATES, read_template, render
from core_generate.chat.tools import Tools, read_tools, with_answer

__all__ = [
    "TEMPLATES",
    "Call",
    "CallArguments",
    "CallBegin",
    "Content",
    "Conversation",
    "FieldError",
    "Piece",
    "Reasoning",
    "SlowTemplate",
    "ToolCallParser",
    "Tools",
    "Whole",
    "joined",
    "mismatch",
    "parser_of",
    "quick_only",
    "read_messages",
    "read_response_format",
    "read_structured_outputs",
    "read_template",
    "read_tools",
    "render",
    "with_answer",
    "without_reasoning",
]
