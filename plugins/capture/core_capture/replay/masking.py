"""Answers of HTTP without the members that a server makes anew, such as the id of an answer of OpenAI."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from core_capture.tensors.http_form import JSON_SIZE, unpacked, value_of
from core_capture.tensors.message import Unreadable

_TOKEN = re.compile(rb'"((?:[^"\\]|\\.)*)"(\s*:\s*)?|[][{}]')
_VALUE = re.compile(rb'"(?:[^"\\]|\\.)*"|[\d.eE+-]+|null')
_CHAT = re.compile(r"/v1/(?!models/)")
_HOLDERS = {
    *(b"choices", b"message", b"delta", b"tool_calls"),
    *(b"response", b"item", b"output", b"content", b"content_block"),
}
"""Members of OpenAI's and Anthropic's answers with objects that have an id of their own."""


def masked(
    path: str, fields: Sequence[tuple[str, str]], answer: bytes, names: Collection[str]
) -> bytes:
    """Return an answer without the values of members of its JSON. Binary tensors, and other bodies, stay.

    path     of the request
    fields   header fields of the answer
    names    of members of the whole JSON, or of each event. OpenAI's and Anthropic's routes have them also in
             choices, messages, calls of tools and other items
    """
    if not names:
        return answer
    try:
        answer = unpacked(fields, answer)
    except Unreadable:
        return answer
    wanted = {name.encode() for name in names}
    holders: Collection[bytes] = _HOLDERS if _CHAT.match(path) else ()
    size = value_of(fields, JSON_SIZE)
    kind = (value_of(fields, "Content-Type") or "").lower()
    if size is not None and size.isdecimal():
        return _object(answer[: int(size)], wanted, holders) + answer[int(size) :]
    if kind.startswith("application/json"):
        return _object(answer, wanted, holders)
    if kind.startswith("text/event-stream"):
        return b"\n".join(
            _object(line, wanted, holders) if line.startswith(b"data:") else line
            for line in answer.split(b"\n")
        )
    return answer


def _object(text: bytes, names: Collection[bytes], holders: Collection[bytes]) -> bytes:
    parts, at = [], 0
    for start, end in _values(text, names, holders):
        parts.append(text[at:start])
        at = end
    return b"".join((*parts, text[at:]))


def _values(
    text: bytes, names: Collection[bytes], holders: Collection[bytes]
) -> Iterator[tuple[int, int]]:
    """Yield where the values of members begin and end, in the object and in its holders."""
    within: list[bool] = []  # of each open list and object: whether its members are meant
    key = b""
    for token in _TOKEN.finditer(text):
        sign = token[0]
        if sign in (b"}", b"]"):
            if within:
                within.pop()
            key = b""
        elif sign in (b"{", b"["):
            # An element of a list has no key.
            within.append(
                sign == b"{" if not within else within[-1] and (not key or key in holders)
            )
            key = b""
        elif token[2]:
            key = token[1]
            if within and within[-1] and key in names:
                value = _VALUE.match(text, token.end())
                if value:
                    yield value.span()
