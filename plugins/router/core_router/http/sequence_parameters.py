"""What the body of a request says about its sequence and its model. Its body may be in chunks.

body ─► [sequence_of] ─► identifier, is_start, is_end
"""

from __future__ import annotations

import re
from typing import Any

import orjson

from core_router.choice.sequences import SequenceParameters
from core_router.http import top_level
from core_router.http.chunks import without_chunks

_NAME = b'"sequence_id"'
# Of a form. A client must not make the router search for long.
_MOST_PARTS = 100
_MOST_FIELD = 2048  # bytes of a field with its headers
# Of JSON that is parsed for its model: more would stop the event loop, and take a hundred bytes for each.
_MOST_CONTAINERS = _MOST_COMMAS = 1_000_000
_IS_COMPILED = not top_level.__file__.endswith(".py")
_DISPOSITION = b"content-disposition:"
_NAMES_MODEL = re.compile(rb"""\bname=(?:model|"model")[ \t]*(?:;|$)""", re.IGNORECASE)


def names_sequence(message: bytes, body_at: int, json_size: int) -> bool:
    """Return whether the JSON of a request has the name of a sequence's identifier, without parsing it.

    message     with the body from `body_at` on
    json_size   bytes of JSON at the start of the body; -1 for all of it
    """
    end = len(message) if json_size < 0 else body_at + json_size
    if message.find(_NAME, body_at, end) >= 0:
        return True
    if json_size == 0 or message[body_at : body_at + 1] == b"{":
        return False
    return _NAME in _json(message[body_at:], json_size)  # chunks may divide the name


def sequence_of(body: bytes, json_size: int) -> SequenceParameters | None:
    """Return the sequence of an inference request; None if it names none, or its JSON is wrong.

    json_size   bytes of JSON at the start of the body; -1 for all of it
    """
    try:
        found: Any = orjson.loads(_json(body, json_size))
    except orjson.JSONDecodeError:
        return None  # the server says what is wrong
    if not isinstance(found, dict):
        return None
    parameters = found.get("parameters")
    # `generate` has its parameters beside its inputs, too.
    for given in (parameters, found):
        if isinstance(given, dict) and "sequence_id" in given:
            identifier = given["sequence_id"]
            if not identifier or not isinstance(identifier, int | str):
                return None
            return SequenceParameters(
                identifier, bool(given.get("sequence_start")), bool(given.get("sequence_end"))
            )
    return None


def model_in(body: bytes) -> str:
    """Return the name of the model in the JSON or the form of a request; "" if it has none.

    "" also for JSON with more than a million lists and objects, or commas, without the compiled part.
    """
    text = _json(body, -1)
    if text.startswith(b"--"):
        return _model_of_form(text)
    return top_level.text_at_top(text, b"model") if _IS_COMPILED else _parsed_model(text)


def _parsed_model(text: bytes) -> str:
    """Return the model in JSON by a parser: reading bytes one by one in Python takes far longer."""
    if text.count(b"[") + text.count(b"{") > _MOST_CONTAINERS or text.count(b",") > _MOST_COMMAS:
        return ""
    try:
        found: Any = orjson.loads(text)
    except orjson.JSONDecodeError:
        return ""
    name = found.get("model") if isinstance(found, dict) else None
    return name if isinstance(name, str) else ""


def _model_of_form(form: bytes) -> str:
    """Return the field `model` of multipart/form-data, if it is among the first parts."""
    boundary, at = form[: form.find(b"\r\n")], 0
    for _ in range(_MOST_PARTS):
        begin = at + len(boundary) + 2
        # Only there: a file may contain what looks like a field.
        head, _, rest = form[begin : begin + _MOST_FIELD].partition(b"\r\n\r\n")
        if any(map(_names_model, head.split(b"\r\n"))) and (end := rest.find(b"\r\n")) >= 0:
            return rest[:end].decode("utf-8", "replace")
        at = form.find(b"\r\n" + boundary, begin - 2) + 2
        if at == 1:
            break
    return ""


def _names_model(header: bytes) -> bool:
    return header.lower().startswith(_DISPOSITION) and bool(_NAMES_MODEL.search(header))


def _json(body: bytes, json_size: int) -> bytes:
    """Return the JSON at the start of a body. json_size: -1 for all of it."""
    text = body if body[:1] == b"{" else without_chunks(body)
    return text if json_size < 0 else text[:json_size]
