"""Options: the options of one step in image.json, read and checked."""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from core.errors import CoreError, invalid

LARGEST_SIDE = 16_384  # of a picture that a step makes, in pixels


class Options:
    """The options of one step. Each method reads one; `done` refuses those that no method has read.

    place   for errors: "'…/image.json': step 1 (resize)"
    Every method raises CoreError(INVALID) that says what was found and what is expected.
    """

    def __init__(self, given: Mapping[str, Any], place: str):
        self._given = given
        self._place = place
        self._known: list[str] = []

    def __contains__(self, name: str) -> bool:
        return name in self._given

    def number(self, name: str, default: float, least: float, largest: float) -> float:
        value = self._value(name, default)
        if (
            isinstance(value, bool)
            or not isinstance(value, (int, float))
            or not least <= value <= largest
        ):
            raise self.wrong(name, f"a number from {least:g} to {largest:g}")
        return float(value)

    def count(self, name: str, default: int, least: int, largest: int) -> int:
        value = self._value(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= largest:
            raise self.wrong(name, f"a whole number from {least} to {largest}")
        return value

    def flag(self, name: str, default: bool) -> bool:
        value = self._value(name, default)
        if not isinstance(value, bool):
            raise self.wrong(name, "true or false")
        return value

    def choice(self, name: str, default: str, choices: Sequence[str]) -> str:
        value = self._value(name, default)
        if value not in choices:
            raise self.wrong(name, " or ".join(choices))
        return str(value)

    def text(self, name: str, default: str = "") -> str:
        value = self._value(name, default)
        if not isinstance(value, str):
            raise self.wrong(name, "a text")
        return value

    def size(self, name: str) -> tuple[int, int]:
        """Return a size as (height, width): a whole number for a square, or a list of the two."""
        value = self._value(name, None)
        pair = value if isinstance(value, list) else [value, value]
        if len(pair) != 2 or not all(_is_side(each) for each in pair):
            raise self.wrong(name, f"a side, or [height, width], from 1 to {LARGEST_SIDE}")
        return pair[0], pair[1]

    def size_or_none(self, name: str) -> tuple[int, int] | None:
        if name in self._given:
            return self.size(name)
        self._known.append(name)
        return None

    def floats(self, name: str, default: float, count: int) -> tuple[float, ...]:
        """Return `count` numbers; one number stands for all."""
        value = self._value(name, default)
        many = value if isinstance(value, list) else [value] * count
        if len(many) != count or not all(_is_number(each) for each in many):
            raise self.wrong(name, f"a number, or a list of {count} numbers")
        return tuple(float(each) for each in many)

    def pairs(self, name: str, count: int) -> list[tuple[int, int]]:
        """Return a list of pairs of numbers from 0 to count - 1; an empty one if it is left out."""
        value = self._value(name, [])
        if not isinstance(value, list) or not all(_is_pair(each, count) for each in value):
            raise self.wrong(name, f"a list of pairs of numbers from 0 to {count - 1}")
        return [(first, second) for first, second in value]

    def done(self) -> None:
        """Raise CoreError(INVALID) for an option that the step does not have, with the nearest name."""
        for name in self._given:
            if name not in self._known:
                near = difflib.get_close_matches(name, self._known, 1)
                advice = f"; did you mean '{near[0]}'?" if near else ""
                raise invalid(
                    f"{self._place} has no option '{name}', only {', '.join(sorted(self._known))}{advice}"
                )

    def wrong(self, name: str, expected: str) -> CoreError:
        if name not in self._given:
            return invalid(f"{self._place} needs the option '{name}': {expected}")
        return invalid(
            f"{self._place}: '{name}' is {json.dumps(self._given[name])}, it must be {expected}"
        )

    def _value(self, name: str, default: Any) -> Any:
        self._known.append(name)
        return self._given.get(name, default)


def _is_side(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= LARGEST_SIDE


def _is_pair(value: object, count: int) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and all(type(each) is int and 0 <= each < count for each in value)
    )


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
