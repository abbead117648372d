"""Fields: reads a JSON object of settings field by field; each error names the field."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from core.errors import CoreError, invalid
from core.similar import did_you_mean

MOST_TEXT = 256  # characters of a text
_MOST_SHOWN = 60  # characters of a value in an error


class Fields:
    """The fields of one JSON object.

    root    what is configured; errors begin with it
    path    of the object below the root, such as "rules[0]"; "" for the root itself
    known   names of its fields
    Raises CoreError(INVALID) for a value that is no object, and for an unknown field.
    """

    def __init__(self, root: str, path: str, value: Any, known: Sequence[str]):
        self.root, self.path = root, path
        if not isinstance(value, Mapping):
            raise self.wrong(f"is {shown(value)}, expected an object with {', '.join(known)}")
        for name in value:
            if name not in known:
                near = did_you_mean(str(name), known)
                raise self.wrong(
                    f"has no field {shown(name)}{near}; its fields: {', '.join(known)}"
                )
        self.values: Mapping[str, Any] = value

    def wrong(self, text: str) -> CoreError:
        """Return CoreError(INVALID) about the object."""
        return invalid(f"{self.root}: {self.path} {text}" if self.path else f"{self.root} {text}")

    def expected(self, name: str, what: str) -> CoreError:
        """Return CoreError(INVALID) for a field with a wrong value, or without one."""
        if name not in self.values:
            return self.wrong(f"needs the field '{name}': {what}")
        return self.of(name, f"is {shown(self.values[name])}, expected {what}")

    def of(self, name: str, text: str) -> CoreError:
        """Return CoreError(INVALID) about a field of the object."""
        path = f"{self.path}.{name}" if self.path else name
        return invalid(f"{self.root}: {path} {text}")

    def text(self, name: str) -> str:
        """Return a text of 1 to MOST_TEXT characters."""
        value = self.values.get(name)
        if not isinstance(value, str) or not 1 <= len(value) <= MOST_TEXT:
            raise self.expected(name, f"a text of 1 to {MOST_TEXT} characters")
        return value

    def number(self, name: str, default: float, least: float, most: float) -> float:
        """Return a number from `least` to `most`; `default` without the field."""
        if name not in self.values:
            return default
        value = self.values[name]
        if not is_number(value) or not least <= value <= most:
            raise self.expected(name, f"a number from {least:g} to {most:g}")
        return float(value)

    def whole(self, name: str, default: int, least: int, most: int) -> int:
        """Return a whole number from `least` to `most`; `default` without the field."""
        value = self.values.get(name, default)
        if type(value) is not int or not least <= value <= most:
            raise self.expected(name, f"a whole number from {least} to {most}")
        return value

    def version(self, name: str) -> int:
        """Return the number of a version, from 2 or "2"."""
        return self.version_of(self.values.get(name), name)

    def version_of(self, value: Any, name: str) -> int:
        """Return the number of a version that the field `name` holds, or has as a key."""
        number = value
        if isinstance(value, str) and re.fullmatch(r"[0-9]{1,18}", value):
            number = int(value)
        if type(number) is not int or number < 0:
            if name not in self.values:
                raise self.expected(name, "the number of a version")
            raise self.of(name, f"has {shown(value)}, expected the number of a version")
        return number

    def texts(self, name: str, most: int) -> tuple[str, ...]:
        """Return the texts of a list of 1 to `most` scalars."""
        value = self.values.get(name)
        if not isinstance(value, list) or not 1 <= len(value) <= most:
            raise self.expected(name, f"a list of 1 to {most} values")
        return tuple(self.scalar(name, each) for each in value)

    def scalar(self, name: str, value: Any) -> str:
        """Return the text of a value that a parameter of a request may have."""
        if not isinstance(value, bool | int | float | str) or len(str(value)) > MOST_TEXT:
            raise self.expected(name, "texts, numbers, true or false")
        return text_of(value)


def text_of(value: bool | int | float | str) -> str:
    """Return a value of a request's parameter as text: true is "true"."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def is_number(value: Any) -> bool:
    """Return whether a JSON value is a finite number."""
    return type(value) in (int, float) and math.isfinite(value)


def shown(value: Any) -> str:
    """Return a value as short JSON text, for errors."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
