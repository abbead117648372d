"""JsonRedaction: JSON without the values of named members, at any depth.

A value becomes an input of a model by the name of its member, by the `name` beside its `data`, or without a
name at all. Values without a name may be those of any tensor, so they are always replaced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from core_capture.tensors.message import Unreadable

_MOST_DEPTH = 200  # orjson writes 254 levels
_FRAMES = ("dataframe_split", "dataframe_records")  # the columns of one may become one input
_UNNAMED = ("instances", "inputs", "predictions", "outputs", "results", "result")
_CHAT = ("content", "text")
_RANKED = ("query", "documents", "document")
_THOUGHTS = ("reasoning", "reasoning_content", "thinking")
_CALLS = ("delta", "arguments", "partial_json")
_TEXTS_OF = {
    "text_input": (
        *(*_CHAT, *_RANKED, *_THOUGHTS, *_CALLS, "prompt", "suffix", "input", "instructions"),
        *("system", "refusal", "tools"),
    ),
    "prompt_token_ids": ("prompt", "input", "tokens"),
    "image": ("image_url", "source"),
    "audio": ("input_audio", "audio_url"),
    "text_output": (*_CHAT, *_THOUGHTS, *_CALLS, "refusal", "logprobs"),
}
"""Tensors that OpenAI's and Anthropic's routes make of members, or members of: their values are theirs."""


class JsonRedaction:
    """Replaces values in JSON documents. Thread-safe.

    matches   returns whether a name is that of a tensor, or of a member, whose values are not recorded
    """

    def __init__(self, matches: Callable[[str], bool]):
        self._matches = matches
        tensors = [tensor for tensor in _TEXTS_OF if matches(tensor)]
        self._texts = frozenset(name for tensor in tensors for name in _TEXTS_OF[tensor])

    def redact(self, document: dict[str, Any], is_v2: bool, found: set[str]) -> None:
        """Replace values in place, and add the names of their members or tensors to `found`.

        is_v2   whether members are named by the v2 protocol or by a model; else also by the routes of
                OpenAI and of TensorFlow Serving
        Raises Unreadable for a document of more than 200 levels.
        """
        if not is_v2:
            for name in _UNNAMED:
                if name in document:
                    here: set[str] = set()
                    document[name] = self._unnamed(document[name], 1, here)
                    found |= {name} if here else set()
        self._object(document, frozenset() if is_v2 else self._texts, 0, found)

    def _object(
        self, document: dict[str, Any], texts: frozenset[str], depth: int, found: set[str]
    ) -> None:
        tensor = str(document.get("name", ""))
        is_tensor = "data" in document and self._matches(tensor)
        for name, value in document.items():
            if is_tensor and name == "data":
                found.add(tensor)
            elif self._matches(name) or name in texts or name in _FRAMES:
                found.add(name)
            else:
                self._below(value, texts, depth + 1, found)
                continue
            document[name] = blank(value, depth + 1)

    def _below(self, value: Any, texts: frozenset[str], depth: int, found: set[str]) -> None:
        _check(depth)
        if isinstance(value, dict):
            self._object(value, texts, depth, found)
        elif isinstance(value, list):
            for each in value:
                if isinstance(each, list | dict):
                    self._below(each, texts, depth + 1, found)

    def _unnamed(self, value: Any, depth: int, found: set[str]) -> Any:
        """Return a value with blanks for what is in no object; {"b64": text} is such a value, too."""
        _check(depth)
        if isinstance(value, list):
            return [self._unnamed(each, depth + 1, found) for each in value]
        if isinstance(value, dict) and value.keys() != {"b64"}:
            return value
        found.add("")
        return blank(value, depth)


def read_object(text: bytes) -> dict[str, Any]:
    """Return the object in a text.

    Raises Unreadable for other texts, and if the object does not have all that is in the text: of members
    with one name, only the last.
    """
    try:
        document = orjson.loads(text)
        whole = orjson.dumps(document)
    except (ValueError, TypeError) as error:
        raise Unreadable(f"a body is no JSON: {error}") from None
    if not isinstance(document, dict):
        raise Unreadable("a body is no JSON object")
    # Each member has two quotes. orjson writes \u0022 as \".
    if text.count(b'"') + text.count(b"\\u0022") != whole.count(b'"'):
        raise Unreadable("a body has several members of one name")
    return document


def blank(value: Any, depth: int = 0) -> Any:
    """Return a JSON value of the same structure with 0, false and "" in place of all numbers and texts.

    depth   levels above the value. Raises Unreadable below 200 levels.
    """
    _check(depth)
    if isinstance(value, list):
        return [blank(each, depth + 1) for each in value]
    if isinstance(value, dict):
        return {name: blank(each, depth + 1) for name, each in value.items()}
    return None if value is None else type(value)()


def _check(depth: int) -> None:
    if depth > _MOST_DEPTH:
        raise Unreadable(f"a body has more than {_MOST_DEPTH} levels")
