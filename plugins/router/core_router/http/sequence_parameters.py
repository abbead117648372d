"""What the JSON of a request says about its sequence and its model.

body ─► [sequence_of] ─► identifier, is_start, is_end
"""

from __future__ import annotations

from typing import Any

import orjson

from core_router.choice.sequences import SequenceParameters


def names_sequence(message: bytes, body_at: int, json_size: int) -> bool:
    """Return whether the JSON of a request has the name of a sequence's identifier, without parsing it.

    message     with the body from `body_at` on
    json_size   bytes of JSON at the start of the body; -1 for all of it
    """
    end = len(message) if json_size < 0 else body_at + json_size
    return message.find(b'"sequence_id"', body_at, end) >= 0


def sequence_of(body: bytes, json_size: int) -> SequenceParameters | None:
    """Return the sequence of an inference request; None if it names none, or its JSON is wrong.

    json_size   bytes of JSON at the start of the body; -1 for all of it
    """
    try:
        found: Any = orjson.loads(body if json_size < 0 else body[:json_size])
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
        found: Any = orjson.loads(body)
    except orjson.JSONDecodeError:
        return ""
    name = found.get("model") if isinstance(found, dict) else None
    return name if isinstance(name, str) else ""
