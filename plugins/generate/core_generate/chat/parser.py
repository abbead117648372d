"""The parser of a generated text: its base class, and the parser of one call that the request names.

The pieces that a parser finds do not depend on how the text was cut: only the borders between them do.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

from core_generate.chat.pieces import CallArguments, CallBegin, Content, Piece


def new_call_id() -> str:
    """Return a new identifier of a call: "call_" and 24 random hexadecimal digits."""
    return f"call_{secrets.token_hex(12)}"


class ToolCallParser:
    """Base class, and the parser of a text without calls: all of it is content. For one text, on one thread.

    plain   True if all text is content as it is, so that callers may skip `feed`
    """

    plain = True

    def feed(self, text: str) -> list[Piece]:
        """Add text. Return the pieces that are certain now and were not returned before; [] for none."""
        return [Content(text)] if text else []

    def end(self) -> list[Piece]:
        """Return the pieces of text that was held back; [] for none. Called once, after the last `feed`."""
        return []


class ArgumentsParser(ToolCallParser):
    """Parses the text of one call whose function is known: all text but space at its begin is arguments."""

    plain = False

    def __init__(self, name: str, new_id: Callable[[], str] = new_call_id):
        self._name = name
        self._new_id = new_id
        self._begun = False

    def feed(self, text: str) -> list[Piece]:
        if self._begun:
            return [CallArguments(0, text)] if text else []
        text = text.lstrip()
        if not text:
            return []
        self._begun = True
        return [CallBegin(0, self._new_id(), self._name), CallArguments(0, text)]


def overlap(text: str, marker: str) -> int:
    """Return how many last characters of a text are the begin of a marker, but not all of it; 0 for none."""
    for size in range(min(len(text), len(marker) - 1), 0, -1):
        if text.endswith(marker[:size]):
            return size
    return 0
