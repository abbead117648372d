"""The depth of parsed JSON: one bound for requests, and for JSON within their texts.

orjson reads 1,023 levels and writes 254, and repr and json fail at some number of their own.
"""

from __future__ import annotations

from typing import Any

MOST_LEVELS = 128


def levels_of(value: Any) -> int:
    """Return how many levels of objects and lists a value of parsed JSON has; 0 for a string or a number."""
    levels = 0
    level = [value] if type(value) in (dict, list) else []
    while level:
        levels += 1
        level = [
            each
            for parent in level
            for each in (parent.values() if type(parent) is dict else parent)
            if type(each) in (dict, list)
        ]
    return levels


def excess_of(value: Any) -> str:
    """Return what an error says of a value of too many levels; "" if it has at most MOST_LEVELS."""
    levels = levels_of(value)
    if levels <= MOST_LEVELS:
        return ""
    return f"{levels} levels of lists and objects; at most {MOST_LEVELS} are accepted"
