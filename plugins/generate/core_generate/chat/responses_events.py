"""Turns the pieces of a generation into a response of OpenAI's Responses, or into its events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from core.errors import CoreError, Kind
from core_generate.chat.pieces import CallArguments, CallBegin, Content, Piece, Reasoning

_ECHOED: dict[str, Any] = {
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "reasoning": None,
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": None,
    "truncation": "disabled",
    "user": None,
}
_TEXT_EVENTS = {"message": "output_text", "reasoning": "reasoning_text"}


def response(
    identifier: str,
    request: Mapping[str, Any],
    created_s: int,
    pieces: Iterable[Piece],
    finish: str,
    **usage: int,
) -> dict[str, Any]:
    """Return a whole response that is not streamed, complete or cut off.

    The arguments are those of ResponseEvents, of its `feed`, and of its `end`.
    """
    events = ResponseEvents(identifier, request, created_s)
    events.feed(pieces)
    whole: dict[str, Any] = events.end(finish, **usage)[-1]["response"]
    return whole


class ResponseEvents:
    """Makes the events of one response's stream. Each public method returns the next ones.

    anthropic_events.sse turns an event into bytes.
    identifier   of the response, such as resp_…
    request      the body of the request; the response repeats some of its fields
    created_s    time of the request, in seconds since 1970
    """

    around = None  # each event has its own number, and the last ones repeat the text

    def __init__(self, identifier: str, request: Mapping[str, Any], created_s: int):
        given = {name: request.get(name) for name in _ECHOED}
        self._head = {
            "id": identifier,
            "object": "response",
            "created_at": created_s,
            "model": request.get("model", ""),
            "background": False,
            "previous_response_id": None,
            "store": False,
            **{
                name: each if given[name] is None else given[name] for name, each in _ECHOED.items()
            },
        }
        self._suffix = identifier.partition("_")[2]
        self._number = 0
        self._output: list[dict[str, Any]] = []
        self._item: dict[str, Any] | None = None  # the one that is not complete
        self._text: list[str] = []

    def begin(self) -> list[dict[str, Any]]:
        """Return the first two events: response.created and response.in_progress."""
        document = self._response("in_progress")
        return [
            self._event("response.created", response=document),
            self._event("response.in_progress", response=document),
        ]

    def feed(self, pieces: Iterable[Piece]) -> list[dict[str, Any]]:
        """Return the events that write these pieces; a piece of another kind ends the open item."""
        events: list[dict[str, Any]] = []
        for piece in pieces:
            if isinstance(piece, (Content, Reasoning)):
                self._need(events, "message" if isinstance(piece, Content) else "reasoning")
                self._add_text(events, piece.text)
            elif isinstance(piece, CallBegin):
                self._close(events, "completed")
                more = {"call_id": piece.id, "name": piece.name, "arguments": ""}
                self._open(events, {"type": "function_call", "id": self._id("fc"), **more})
            elif isinstance(piece, CallArguments):
                self._text.append(piece.text)
                name = "response.function_call_arguments.delta"
                events.append(self._event(name, **self._place(), delta=piece.text))
        return events

    def end(
        self, finish: str, *, prompt_tokens: int = 0, cached_tokens: int = 0, tokens: int = 0
    ) -> list[dict[str, Any]]:
        """Return the last events. A response without any item gets an empty message.

        finish   "stop", or "length": the response is incomplete then
        """
        status = "incomplete" if finish == "length" else "completed"
        events: list[dict[str, Any]] = []
        if not self._output:
            self._need(events, "message")
        self._close(events, status)
        usage = {
            "input_tokens": prompt_tokens,
            "input_tokens_details": {"cached_tokens": cached_tokens, "cache_write_tokens": 0},
            "output_tokens": tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": prompt_tokens + tokens,
        }
        details = {"reason": "max_output_tokens"} if finish == "length" else None
        document = {**self._response(status), "incomplete_details": details, "usage": usage}
        return [*events, self._event(f"response.{status}", response=document)]

    def fail(self, error: CoreError) -> list[dict[str, Any]]:
        """Return the last event of a stream that an error ends, response.failed, in a list."""
        code = "rate_limit_exceeded" if error.kind is Kind.EXHAUSTED else "server_error"
        document = {**self._response("failed"), "error": {"code": code, "message": error.message}}
        return [self._event("response.failed", response=document)]

    def _response(self, status: str) -> dict[str, Any]:
        more = {"status": status, "error": None, "incomplete_details": None, "usage": None}
        return {**self._head, **more, "output": list(self._output)}

    def _event(self, kind: str, **fields: Any) -> dict[str, Any]:
        event = {"type": kind, "sequence_number": self._number, **fields}
        self._number += 1
        return event

    def _id(self, kind: str) -> str:
        return f"{kind}_{self._suffix}_{len(self._output)}"

    def _place(self) -> dict[str, Any]:
        assert self._item is not None
        return {"item_id": self._item["id"], "output_index": len(self._output) - 1}

    def _open(self, events: list[dict[str, Any]], item: dict[str, Any]) -> None:
        self._item, self._text = {**item, "status": "in_progress"}, []
        self._output.append(self._item)
        index = len(self._output) - 1
        added = dict(self._item)
        events.append(self._event("response.output_item.added", output_index=index, item=added))

    def _need(self, events: list[dict[str, Any]], kind: str) -> None:
        """Unless an item of this kind is open, end the open one and begin one: add their events.

        kind   "message" or "reasoning"
        """
        if self._item is not None and self._item["type"] == kind:
            return
        self._close(events, "completed")
        if kind == "message":
            item = {"type": kind, "id": self._id("msg"), "role": "assistant", "content": []}
        else:
            item = {"type": kind, "id": self._id("rs"), "summary": [], "content": []}
        self._open(events, item)
        part = _part(kind, "")
        name = "response.content_part.added"
        events.append(self._event(name, **self._place(), content_index=0, part=part))

    def _add_text(self, events: list[dict[str, Any]], text: str) -> None:
        assert self._item is not None
        self._text.append(text)
        kind = self._item["type"]
        more: dict[str, Any] = {"logprobs": []} if kind == "message" else {}
        name = f"response.{_TEXT_EVENTS[kind]}.delta"
        events.append(self._event(name, **self._place(), content_index=0, delta=text, **more))

    def _close(self, events: list[dict[str, Any]], status: str) -> None:
        item = self._item
        if item is None:
            return
        text, place, kind = "".join(self._text), self._place(), item["type"]
        item["status"] = status
        if kind == "function_call":
            item["arguments"] = text
            done = {"arguments": text, "name": item["name"]}
            events.append(self._event("response.function_call_arguments.done", **place, **done))
        else:
            part = _part(kind, text)
            item["content"] = [part]
            place["content_index"] = 0
            more: dict[str, Any] = {"logprobs": []} if kind == "message" else {}
            name = f"response.{_TEXT_EVENTS[kind]}.done"
            events.append(self._event(name, **place, text=text, **more))
            events.append(self._event("response.content_part.done", **place, part=part))
        index = len(self._output) - 1
        events.append(self._event("response.output_item.done", output_index=index, item=dict(item)))
        self._item = None


def _part(kind: str, text: str) -> dict[str, Any]:
    if kind == "reasoning":
        return {"type": "reasoning_text", "text": text}
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
