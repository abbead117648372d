"""Reading the query and the headers of a call."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from urllib.parse import parse_qsl

from core.errors import invalid
from frontends.http.message import HttpRequest


def query_of(call: HttpRequest, known: Collection[str]) -> Mapping[str, str]:
    """Return name → value of the query. Raises CoreError(INVALID) for a name that is not known or repeats."""
    found: dict[str, str] = {}
    for name, value in parse_qsl(call.query, keep_blank_values=True):
        if name not in known:
            raise invalid(
                f"unknown query parameter '{name[:64]}'; expected {', '.join(known) or 'none'}"
            )
        if name in found:
            raise invalid(f"query parameter '{name}' is given twice; expected once")
        found[name] = value
    return found


def number(name: str, text: str, most: float, least: float = 0.0) -> float:
    """Return the number in a text. Raises CoreError(INVALID) if it is none, or out of bounds."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not least <= value <= most:
        raise invalid(f"{name} is '{text[:64]}'; expected a number from {least:g} to {most:g}")
    return value


def whole(name: str, text: str, most: int, least: int = 0) -> int:
    """Return the whole number in a text. Raises CoreError(INVALID) if it is none, or out of bounds."""
    value = int(text) if text.isascii() and text.isdigit() and len(text) < 16 else -1
    if not least <= value <= most:
        raise invalid(f"{name} is '{text[:64]}'; expected a whole number from {least} to {most}")
    return value


def truth(name: str, text: str) -> bool:
    """Return the truth value in a text. Raises CoreError(INVALID) if it is none."""
    if text not in ("true", "false"):
        raise invalid(f"{name} is '{text[:64]}'; expected true or false")
    return text == "true"
