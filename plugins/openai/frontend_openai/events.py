"""Chunks: the events of one stream. Their constant parts are bytes, made once; only text is escaped.

data: {"id":…,"object":…,"created":…,"model":…,"choices":[{"index":0,"delta":{"content":"…"},…}]}
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable
from typing import Any

import orjson

from core.errors import CoreError
from frontend_openai.errors import members_of
from frontend_openai.pieces import Piece, TokenLogprob
from frontends.http.errors import status_of
from frontends.shared.usage_meter import CountsTokens

DONE = b"data: [DONE]\n\n"


class Head:
    """The members that all events of one call have, and its whole response.

    kind   its `object`
    """

    def __init__(self, prefix: str, kind: str, model: str):
        self.members: dict[str, Any] = {
            "id": f"{prefix}-{secrets.token_hex(16)}",
            "object": kind,
            "created": int(time.time()),
            "model": model,
        }


class Chunks:
    """Makes the events of one stream.

    usage   whether the last event has the usage, and all others a member `usage` that is null
    """

    def __init__(self, head: Head, usage: bool):
        self._head = b"data: %b," % orjson.dumps(head.members)[:-1]
        self._end = b',"usage":null}\n\n' if usage else b"}\n\n"

    def around(self, index: int, before: bytes, behind: bytes) -> tuple[bytes, bytes]:
        """Return the parts around the text in an event of one choice.

        before, behind   what its object has between the index and the text, and behind the text
        """
        start = b'%b"choices":[{"index":%d,%b' % (self._head, index, before)
        return start, b"%b}]%b" % (behind, self._end)

    def event(self, choice: dict[str, Any]) -> bytes:
        """Return an event with one choice."""
        return b'%b"choices":[%b]%b' % (self._head, orjson.dumps(choice), self._end)

    def usage(self, members: dict[str, Any]) -> bytes:
        """Return the event with the usage."""
        return b'%b"choices":[],"usage":%b}\n\n' % (self._head, orjson.dumps(members))


def error_event(error: CoreError) -> bytes:
    """Return the event for an error within a stream; nothing follows it."""
    return b"data: %b\n\n" % orjson.dumps({"error": members_of(error, status_of(error))})


class Usage:
    """Counts the tokens of one call for its client.

    prompts   of the call: several choices of one prompt count it once
    wanted    whether the response has the usage
    """

    def __init__(self, prompts: int, wanted: bool = True):
        self.wanted = wanted
        self._prompts = [-1] * prompts  # tokens of each; -1 if not known yet
        self._tokens = -1
        self._costs: list[tuple[int, CountsTokens]] = []

    def count(self, prompt: int, piece: Piece) -> None:
        """Count a piece of the text of a prompt, by its number."""
        if piece.prompt_tokens >= 0:
            self._prompts[prompt] = piece.prompt_tokens
        if piece.tokens >= 0:
            self._tokens = max(self._tokens, 0) + piece.tokens

    def follow(self, prompt: int, cost: CountsTokens) -> None:
        """Count the cost of a text of a prompt; then pieces do not count."""
        self._costs.append((prompt, cost))

    def members(self) -> dict[str, Any] | None:
        """Return the usage; None if the model does not count."""
        if self._costs:
            self._tokens = 0
        for number, cost in self._costs:
            prompt_tokens, tokens = cost.token_counts()
            self._prompts[number] = max(self._prompts[number], prompt_tokens)
            self._tokens += max(tokens, 0)
        if self._tokens < 0 and max(self._prompts, default=-1) < 0:
            return None
        prompt = sum(each for each in self._prompts if each > 0)
        tokens = max(self._tokens, 0)
        return {
            "prompt_tokens": prompt,
            "completion_tokens": tokens,
            "total_tokens": prompt + tokens,
        }


def stopped_by(stop: str) -> dict[str, str]:
    """Return the member of a choice that names the stop string which has ended its text, as vLLM's."""
    return {"stop_reason": stop} if stop else {}


def chat_logprobs(entries: Iterable[TokenLogprob], most: int) -> dict[str, Any]:
    """Return logprobs in the form of chats, with at most `most` alternatives of each token."""
    return {
        "content": [
            {
                **_of_chat(each.text, each.logprob),
                "top_logprobs": [_of_chat(text, value) for text, value in each.top[:most]],
            }
            for each in entries
        ],
        "refusal": None,
    }


def _of_chat(text: str, logprob: float) -> dict[str, Any]:
    return {"token": text, "logprob": logprob, "bytes": list(text.encode("utf-8", "replace"))}


def completion_logprobs(entries: Iterable[TokenLogprob], offset: int, most: int) -> dict[str, Any]:
    """Return logprobs in the form of completions.

    offset   characters before the first token
    """
    found: dict[str, Any] = {
        "text_offset": [],
        "token_logprobs": [],
        "tokens": [],
        "top_logprobs": [] if most else None,
    }
    for each in entries:
        found["text_offset"].append(offset)
        found["token_logprobs"].append(each.logprob)
        found["tokens"].append(each.text)
        if most:
            found["top_logprobs"].append({**dict(each.top[:most]), each.text: each.logprob})
        offset += len(each.text)
    return found
