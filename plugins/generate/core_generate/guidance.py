"""JSON schemas for engines with LLGuidance: the white space between the parts of a text has a bound.

LLGuidance permits any white space that JSON permits. A model that repeats line ends would then fill its
context, and its text would end in the middle. One line and indented lines stay possible.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_OPTIONS = "x-guidance"  # member of a schema that LLGuidance reads, at the top only
_WHITE_SPACE = r"[ \t]|\r?\n[ \t]{0,32}"


def guidance_schema(schema: Mapping[str, Any] | bool) -> Mapping[str, Any]:
    """Return a schema for LLGuidance; True stands for any object.

    A schema that sets white space by itself, with its member x-guidance, keeps that.
    """
    found = {"type": "object"} if isinstance(schema, bool) else schema
    options: Any = found.get(_OPTIONS, {})
    if not isinstance(options, Mapping) or not {
        "whitespace_flexible",
        "whitespace_pattern",
    }.isdisjoint(options):
        return found
    return {**found, _OPTIONS: {**options, "whitespace_pattern": _WHITE_SPACE}}
