"""The choices of a chat: pieces of text ─► events, or the message of a whole response."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import orjson
from core_generate.chat import CallArguments, CallBegin, Content, Reasoning

from frontend_openai.events import Chunks, Usage, chat_logprobs, stopped_by
from frontend_openai.pieces import Piece, TokenLogprob


class Parser(Protocol):
    """Finds calls of tools and reasoning in a text (core_generate.chat.ToolCallParser)."""

    def feed(self, text: str) -> Sequence[Any]: ...
    def end(self) -> Sequence[Any]: ...


class ChatEvents:
    """One choice of a stream.

    prompt     number of its prompt, for the usage
    parser     None if its text is nothing but content
    logprobs   alternatives of each token; None for no logprobs
    """

    def __init__(
        self, chunks: Chunks, index: int, usage: Usage, parser: Parser | None, logprobs: int | None
    ):
        self._chunks = chunks
        self._index = index
        self._usage = usage
        self._parser = parser
        self._logprobs = logprobs
        self._held: list[TokenLogprob] = []  # of text that the parser holds back
        self._finish = self._stop = ""
        self._calls = False
        self._plain = parser is None and logprobs is None
        self._before, self._behind = chunks.around(
            index, b'"delta":{"content":', b'},"logprobs":null,"finish_reason":null'
        )
        self._role: bytes = self._event({"role": "assistant", "content": "", "refusal": None})

    @property
    def around(self) -> tuple[bytes, bytes] | None:
        """Return the parts of an event around its text, after the first event; None if texts are parsed."""
        return (self._before, self._behind) if self._plain and not self._role else None

    def take(self, piece: Piece) -> bytes:
        """Take a piece of the text; return its events."""
        self._usage.count(0, piece)
        self._finish = piece.finish or self._finish
        self._stop = piece.stop
        if self._plain:
            text = piece.text
            found = self._before + orjson.dumps(text) + self._behind if text else b""
        else:
            self._held += piece.logprobs or ()
            found = self._parsed(piece.text) if piece.text else b""
        role, self._role = self._role, b""
        return role + found if role else found

    def end(self) -> bytes:
        """Return the last events."""
        found, self._role = self._role, b""
        if self._parser is not None:
            found += self._events(self._parser.end())
        finish = self._finish or "stop"
        if self._calls and finish == "stop":
            finish = "tool_calls"
        rest = self._taken()
        return found + self._event({}, rest, finish)

    def _parsed(self, text: str) -> bytes:
        if self._parser is None:
            return self._event({"content": text}, self._taken())
        return self._events(self._parser.feed(text))

    def _events(self, parts: Sequence[Any]) -> bytes:
        found = b""
        for part in parts:
            self._calls = self._calls or isinstance(part, CallBegin)
            if isinstance(part, Content) and not self._held:
                found += self._before + orjson.dumps(part.text) + self._behind
            else:
                found += self._event(_delta_of(part), self._taken())
        return found

    def _taken(self) -> dict[str, Any] | None:
        """Return the logprobs of the tokens that have come since the event before."""
        if self._logprobs is None or not self._held:
            return None
        held, self._held = self._held, []
        return chat_logprobs(held, self._logprobs)

    def _event(
        self, delta: dict[str, Any], logprobs: dict[str, Any] | None = None, finish: str = ""
    ) -> bytes:
        return self._chunks.event(
            {
                "index": self._index,
                "delta": delta,
                "logprobs": logprobs,
                "finish_reason": finish or None,
                **stopped_by(self._stop),
            }
        )


def _delta_of(part: Any) -> dict[str, Any]:
    if isinstance(part, Content):
        return {"content": part.text}
    if isinstance(part, Reasoning):
        return {"reasoning_content": part.text}
    if isinstance(part, CallBegin):
        function = {"name": part.name, "arguments": ""}
        call = {"index": part.index, "id": part.id, "type": "function", "function": function}
    else:
        call = {"index": part.index, "function": {"arguments": part.text}}
    return {"tool_calls": [call]}


class ChatMessage:
    """One choice of a whole response; arguments as of ChatEvents."""

    around = None

    def __init__(self, index: int, usage: Usage, parser: Parser | None, logprobs: int | None):
        self._index = index
        self._usage = usage
        self._parser = parser
        self._logprobs = logprobs
        self._entries: list[TokenLogprob] = []
        self._finish = self._stop = ""
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._calls: dict[int, dict[str, Any]] = {}

    def take(self, piece: Piece) -> bytes:
        """Take a piece of the text; return no events."""
        self._usage.count(0, piece)
        self._finish = piece.finish or self._finish
        self._stop = piece.stop
        self._entries += piece.logprobs or ()
        if self._parser is None:
            self._content.append(piece.text)
        else:
            self._sort(self._parser.feed(piece.text))
        return b""

    def end(self) -> bytes:
        """Take the end of the text."""
        if self._parser is not None:
            self._sort(self._parser.end())
        return b""

    def _sort(self, parts: Sequence[Any]) -> None:
        for part in parts:
            if isinstance(part, Content):
                self._content.append(part.text)
            elif isinstance(part, Reasoning):
                self._reasoning.append(part.text)
            elif isinstance(part, CallBegin):
                function = {"name": part.name, "arguments": ""}
                self._calls[part.index] = {"id": part.id, "type": "function", "function": function}
            elif isinstance(part, CallArguments):
                self._calls[part.index]["function"]["arguments"] += part.text

    def members(self) -> dict[str, Any]:
        """Return the choice of the response, after the end."""
        content = "".join(self._content)
        message: dict[str, Any] = {
            "role": "assistant",
            "content": content if content or not self._calls else None,
            "refusal": None,
        }
        if self._reasoning:
            message["reasoning_content"] = "".join(self._reasoning)
        if self._calls:
            message["tool_calls"] = list(self._calls.values())
        finish = self._finish or "stop"
        wanted = self._logprobs is not None
        return {
            "index": self._index,
            "message": message,
            "logprobs": chat_logprobs(self._entries, self._logprobs or 0) if wanted else None,
            "finish_reason": "tool_calls" if self._calls and finish == "stop" else finish,
            **stopped_by(self._stop),
        }
