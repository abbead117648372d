"""JSON text → Python values, as strict as JSON and as lenient as Triton.

orjson reads what is plain JSON. What it refuses is read again, slowly: Triton takes NaN, Inf,
Infinity and -NaN as numbers, and the text of the refusal must say where the document is wrong.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

import orjson

from core.errors import CoreError, invalid
from core.tensor import Buffer

_PREFIX = "failed to parse the request JSON buffer:"
TOO_DEEP = "JSON nesting depth exceeds maximum allowed limit (100)"

# Strings, so that what is in them stays; an open string reaches to the end, so that no byte is looked
# at twice. The numbers are those that Python's parser does not know.
_STRING_OR_NUMBER = re.compile(
    r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|-?Inf(?:inity)?|-NaN', re.DOTALL
)


def read_json(data: Buffer) -> Any:
    """The value that `data` holds; integers of more than 64 bits may come as float.

    Raises CoreError(INVALID) for what is no JSON, with the position of the first wrong byte.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        return _read_slowly(data, error)


def _read_slowly(data: Buffer, first: orjson.JSONDecodeError) -> Any:
    """`data`, which orjson refused with `first`."""
    try:
        text = str(data, "utf-8")
    except UnicodeDecodeError as error:
        raise invalid(f"{_PREFIX} Invalid UTF-8. at {error.start}") from None
    try:
        value = _decode(text)
        if "\\u" in text:
            # Python lets half a surrogate pair through, which no wire form can carry.
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except UnicodeEncodeError:
        reason = "The surrogate pair in string is invalid"
        raise _refusal(text, reason, first.pos if "surrogate" in first.msg else None) from None
    except OverflowError:
        reason = "Number too big to be stored in double"
        raise _refusal(text, reason, first.pos if "infinity" in first.msg else None) from None
    except RecursionError:
        raise invalid(TOO_DEEP) from None
    except CoreError:
        raise
    except ValueError as error:  # an integer of thousands of digits
        raise _refusal(text, str(error), None) from None


def _decode(text: str) -> Any:
    try:
        return _decoder.decode(text)
    except json.JSONDecodeError as error:
        if not text.startswith(("Inf", "-Inf", "-NaN"), error.pos):
            raise _refusal(text, error.msg, error.pos) from None
    longer, growth = _with_known_numbers(text)
    try:
        return _decoder.decode(longer)
    except json.JSONDecodeError as error:
        position = error.pos - sum(more for start, more in growth if start < error.pos)
        raise _refusal(text, error.msg, position) from None


def _with_known_numbers(text: str) -> tuple[str, list[tuple[int, int]]]:
    """The text with Infinity for Inf and NaN for -NaN, and (position, growth) of each change."""
    growth: list[tuple[int, int]] = []
    grown = 0

    def known(match: re.Match[str]) -> str:
        nonlocal grown
        found = match.group()
        if found[0] == '"':
            return found
        new = "NaN" if found == "-NaN" else "-Infinity" if found[0] == "-" else "Infinity"
        growth.append((match.start() + grown, len(new) - len(found)))
        grown += len(new) - len(found)
        return new

    return _STRING_OR_NUMBER.sub(known, text), growth


def _refusal(text: str, reason: str, position: int | None) -> CoreError:
    """`position` in characters, None if it is not known; told in bytes, as Triton does."""
    if position is None:
        return invalid(f"{_PREFIX} {reason}.")
    reason = reason.removesuffix(" at").removesuffix(" starting")
    return invalid(f"{_PREFIX} {reason}. at {len(text[:position].encode())}")


def _finite(literal: str) -> float:
    value = float(literal)
    if math.isinf(value):
        raise OverflowError(literal)
    return value


_decoder = json.JSONDecoder(parse_float=_finite)
