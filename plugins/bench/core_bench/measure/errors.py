"""readable: the text of a failed request, as a person reads it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from urllib.parse import unquote

# Of gRPC, by number.
_CODES = (
    "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
    "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE",
    "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
)  # fmt: skip
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_MOST = 300


def readable(text: str) -> str:
    """Return the error in one line. The load generators write 'HTTP 400 {…}', 'grpc 3 …', 'event {…}'."""
    found = re.match(r"(HTTP (\d+)|grpc (\d+)|event|stream)? ?(.*)", text, re.DOTALL)
    assert found is not None
    rest = found[4]
    if found[3]:
        number = int(found[3])
        code = _CODES[number] if number < len(_CODES) else found[3]
        rest = f"{code}: {unquote(rest)}"
    else:
        rest = _message(rest)
        if found[2]:
            rest = f"{found[2]}: {rest or 'without a text'}"
    if rest == "timeout":
        rest = "no answer within --timeout"
    return _CONTROLS.sub(" ", rest)[:_MOST].strip()


def merged(errors: Mapping[str, int]) -> dict[str, int]:
    """Return the counts by readable text, the largest first."""
    counts: dict[str, int] = {}
    for text, count in errors.items():
        line = readable(text)
        counts[line] = counts.get(line, 0) + count
    return dict(sorted(counts.items(), key=lambda each: -each[1]))


def _message(text: str) -> str:
    """Return the text in the JSON of an error; of JSON that was cut, what is there."""
    try:
        found = json.loads(text).get("error", text)
    except (ValueError, AttributeError):
        cut = re.match(r'\{"error": ?(?:\{"message": ?)?"(.*)', text, re.DOTALL)
        return cut[1] if cut else text
    return str(found.get("message", found)) if isinstance(found, dict) else str(found)
