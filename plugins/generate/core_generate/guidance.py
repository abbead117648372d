"""JSON schemas for engines with LLGuidance: the white space between the parts of a text has a bound.

LLGuidance permits any white space that JSON permits. A model that repeats line ends would then fill its
context, and its text would end in the middle.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_OPTIONS = "x-guidance"  # member of a schema that LLGuidance reads, at the top only
# One line, or lines with an indentation.
_LINES = {"whitespace_pattern": r"[ \t]|\r?\n[ \t]{0,32}"}
# One line. LLGuidance 1.0 lets the white space of a pattern repeat without a bound.
_LINE = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}


def guidance_schema(
    schema: Mapping[str, Any] | bool, *, one_line: bool = False
) -> Mapping[str, Any]:
    """Return a schema for LLGuidance; True stands for any object.

    one_line   whether the text must be one line: for versions of LLGuidance before 1.9
    A schema that sets white space by itself, with its member x-guidance, keeps that.
    """
    found = {"type": "object"} if isinstance(schema, bool) else schema
    options: Any = found.get(_OPTIONS, {})
    bounds = _LINE if one_line else _LINES
    if not isinstance(options, Mapping) or not {*_LINES, *_LINE}.isdisjoint(options):
        return found
    return {**found, _OPTIONS: {**options, **bounds}}
