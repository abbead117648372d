"""What the JSON of a request says about its sequence and its model. Its body may be in chunks.

body ─► [sequence_of] ─► identifier, is_start, is_end
"""

from __future__ import annotations

from typing import Any

import orjson

from core_router.choice.sequences import SequenceParameters
from core_router.http.chunks import without_chunks

_NAME = b'"sequence_id"'


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
    """Return the name of the model in the JSON of a request; "" if it has none."""
    try:
        found: Any = orjson.loads(_json(body, -1))
    except orjson.JSONDecodeError:
        return ""
    name = found.get("model") if isinstance(found, dict) else None
    return name if isinstance(name, str) else ""


def _json(body: bytes, json_size: int) -> bytes:
    """Return the JSON at the start of a body. json_size: -1 for all of it."""
    text = body if body[:1] == b"{" else without_chunks(body)
    return text if json_size < 0 else text[:json_size]
