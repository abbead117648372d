"""Turns the pieces of a generation into Anthropic's message, or into the events of its stream."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from core_generate.chat.messages import read_arguments
from core_generate.chat.pieces import CallArguments, CallBegin, Content, Piece, Reasoning, joined


def sse(event: dict[str, Any]) -> bytes:
    """Return an event in the form text/event-stream; the event's field `type` becomes its name."""
    return b"event: %b\ndata: %b\n\n" % (event["type"].encode(), orjson.dumps(event))


def message(
    identifier: str,
    model: str,
    pieces: Iterable[Piece],
    finish: str,
    *,
    stop_sequence: str | None = None,
    prompt_tokens: int = 0,
    cached_tokens: int = 0,
    tokens: int = 0,
) -> dict[str, Any]:
    """Return a whole answer as one message of Anthropic's API.

    identifier      of the message
    finish          "stop" or "length"
    stop_sequence   the stop string that ended the text; None if none did or the engine does not say
    """
    whole = joined(pieces)
    content: list[dict[str, Any]] = []
    if whole.reasoning:
        content.append({"type": "thinking", "thinking": whole.reasoning, "signature": ""})
    if whole.content or not whole.calls:
        content.append({"type": "text", "text": whole.content})
    for call in whole.calls:
        arguments = _arguments(call.arguments)
        content.append({"type": "tool_use", "id": call.id, "name": call.name, "input": arguments})
    return {
        **_head(identifier, model),
        "content": content,
        "stop_reason": stop_reason(finish, bool(whole.calls), stop_sequence),
        "stop_sequence": stop_sequence,
        "usage": _usage(prompt_tokens, cached_tokens, tokens),
    }


def stop_reason(finish: str, has_calls: bool, stop_sequence: str | None) -> str:
    """Return Anthropic's word for why a generation has ended.

    "max_tokens" if `finish` is "length"; else "tool_use" if it has calls; else "end_turn", or "stop_sequence"
    if a stop string ended it (None: none did).
    """
    if finish == "length":
        return "max_tokens"
    if has_calls:
        return "tool_use"
    return "end_turn" if stop_sequence is None else "stop_sequence"


def _arguments(text: str) -> dict[str, Any]:
    """Return the arguments of a call as an object: parsed, or {"text": text} if they are no JSON object."""
    try:
        return read_arguments(text, "input")
    except Exception:  # whatever the model has written
        return {"text": text}


def _head(identifier: str, model: str) -> dict[str, Any]:
    return {"id": identifier, "type": "message", "role": "assistant", "model": model}


def _usage(prompt_tokens: int, cached_tokens: int, tokens: int) -> dict[str, int]:
    return {
        "input_tokens": prompt_tokens - cached_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached_tokens,
        "output_tokens": tokens,
    }


class MessageEvents:
    """Makes the events of one message's stream. `begin`, then `feed`, then `end` return the next events."""

    def __init__(self, identifier: str, model: str):
        self._identifier = identifier
        self._model = model
        self._index = -1
        self._open = ""  # kind of the block that is open
        self._has_calls = False

    @property
    def around(self) -> tuple[bytes, bytes] | None:
        """Return what the event of further content has before and behind its text, a string of JSON.

        None while no block of text is open. Such an event may be written without `feed`.
        """
        if self._open != "text":
            return None
        events: list[dict[str, Any]] = []
        self._delta(events, {"type": "text_delta", "text": ""})
        before, _, behind = sse(events[0]).partition(b'""')
        return before, behind

    def begin(self, prompt_tokens: int = 0) -> list[dict[str, Any]]:
        """Return the first event, message_start, in a list. `prompt_tokens`: 0 if not known yet."""
        head = _head(self._identifier, self._model)
        more: dict[str, Any] = {"content": [], "stop_reason": None, "stop_sequence": None}
        usage = _usage(prompt_tokens, 0, 0)
        return [{"type": "message_start", "message": {**head, **more, "usage": usage}}]

    def feed(self, pieces: Iterable[Piece]) -> list[dict[str, Any]]:
        """Return the events that write these pieces; a piece of another kind ends the open content block."""
        events: list[dict[str, Any]] = []
        for piece in pieces:
            if isinstance(piece, Content):
                self._need(events, "text", {"type": "text", "text": ""})
                self._delta(events, {"type": "text_delta", "text": piece.text})
            elif isinstance(piece, Reasoning):
                block = {"type": "thinking", "thinking": "", "signature": ""}
                self._need(events, "thinking", block)
                self._delta(events, {"type": "thinking_delta", "thinking": piece.text})
            elif isinstance(piece, CallBegin):
                self._has_calls = True
                self._close(events)
                call: dict[str, Any] = {
                    "type": "tool_use",
                    "id": piece.id,
                    "name": piece.name,
                    "input": {},
                }
                self._need(events, "tool_use", call)
            elif isinstance(piece, CallArguments):
                self._delta(events, {"type": "input_json_delta", "partial_json": piece.text})
        return events

    def end(
        self,
        finish: str,
        *,
        stop_sequence: str | None = None,
        prompt_tokens: int = 0,
        cached_tokens: int = 0,
        tokens: int = 0,
    ) -> list[dict[str, Any]]:
        """Return the last events. An answer without any block gets an empty block of text.

        The arguments are those of `message`.
        """
        events: list[dict[str, Any]] = []
        if self._index < 0:
            self._need(events, "text", {"type": "text", "text": ""})
        self._close(events)
        reason = stop_reason(finish, self._has_calls, stop_sequence)
        delta = {"stop_reason": reason, "stop_sequence": stop_sequence}
        usage = _usage(prompt_tokens, cached_tokens, tokens)
        events.append({"type": "message_delta", "delta": delta, "usage": usage})
        events.append({"type": "message_stop"})
        return events

    def _need(self, events: list[dict[str, Any]], kind: str, block: dict[str, Any]) -> None:
        """Unless a block of this kind is open, end the open one and begin `block`: add their events."""
        if self._open == kind:
            return
        self._close(events)
        self._open = kind
        self._index += 1
        events.append({"type": "content_block_start", "index": self._index, "content_block": block})

    def _delta(self, events: list[dict[str, Any]], delta: dict[str, Any]) -> None:
        events.append({"type": "content_block_delta", "index": self._index, "delta": delta})

    def _close(self, events: list[dict[str, Any]]) -> None:
        if self._open:
            if self._open == "thinking":
                self._delta(events, {"type": "signature_delta", "signature": ""})
            events.append({"type": "content_block_stop", "index": self._index})
            self._open = ""
