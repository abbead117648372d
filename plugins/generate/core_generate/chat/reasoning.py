"""Parses the reasoning that a model writes before its answer, such as <think>…</think>."""

from __future__ import annotations

from core_generate.chat.parser import ToolCallParser, overlap
from core_generate.chat.pieces import Piece, Reasoning


class ReasoningParser(ToolCallParser):
    """Parses the reasoning before an answer, if there is any, then passes the rest to another parser.

    Space around the reasoning is dropped. Reasoning without its end lasts to the end of the text.
    inner        parser of the text behind the reasoning, or of all text if it does not begin with `begin`
    begin, end   markers around the reasoning
    is_begun     whether the prompt already ends with `begin`, so that the text begins within the reasoning
    """

    plain = False

    def __init__(self, inner: ToolCallParser, begin: str, end: str, *, is_begun: bool = False):
        self._inner = inner
        self._begin = begin
        self._end = end
        self._pending = ""
        self._space = ""
        self._any = False  # whether there was reasoning
        self._state = "inside" if is_begun else "before"

    def feed(self, text: str) -> list[Piece]:
        if self._state == "answer":
            return self._inner.feed(text)
        self._pending += text
        pieces: list[Piece] = []
        if self._state == "before" and not self._find_begin():
            return pieces
        if self._state == "inside":
            self._find_end(pieces)
        if self._state == "after":
            self._pending = self._pending.lstrip()
            self._state = "answer" if self._pending else "after"
        if self._state == "answer":
            pieces += self._inner.feed(self._pending)
            self._pending = ""
        return pieces

    def end(self) -> list[Piece]:
        if self._state == "inside":
            pieces: list[Piece] = []
            self._add(pieces, self._pending)
            return [*pieces, *self._inner.end()]
        pending, self._pending = self._pending, ""
        return [*self._inner.feed(pending), *self._inner.end()]

    def _find_begin(self) -> bool:
        """Return whether it is known if the text begins with reasoning; set the state then.

        It is not known while the text so far is space, or a part of the begin marker.
        """
        rest = self._pending.lstrip()
        if rest.startswith(self._begin):
            self._state, self._pending = "inside", rest[len(self._begin) :]
        elif self._begin.startswith(rest):
            return False
        else:
            self._state = "answer"
        return True

    def _find_end(self, pieces: list[Piece]) -> None:
        at = self._pending.find(self._end)
        is_found = at >= 0
        if not is_found:
            at = len(self._pending) - overlap(self._pending, self._end)
        self._add(pieces, self._pending[:at])
        self._pending = self._pending[at + len(self._end) if is_found else at :]
        self._state = "after" if is_found else "inside"

    def _add(self, pieces: list[Piece], text: str) -> None:
        """Add text of the reasoning to `pieces`, without space at its begin.

        Space at the end is kept back until more text follows.
        """
        text = self._space + text
        kept = text.rstrip()
        self._space = text[len(kept) :] if self._any or kept else ""
        if not self._any:
            kept = kept.lstrip()
        if kept:
            self._any = True
            pieces.append(Reasoning(kept))
