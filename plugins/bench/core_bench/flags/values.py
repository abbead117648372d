"""Values of flags: ranges, durations, objectives, shapes. Errors are argparse's: a line, and status 2."""

from __future__ import annotations

import argparse
import math
import re
from pathlib import Path

from core_bench.plan import Objective

_UNITS_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}


def wrong(text: str) -> argparse.ArgumentTypeError:
    return argparse.ArgumentTypeError(text)


def duration(text: str) -> float:
    """Return seconds of '200ms', '5s', '2m', '50us'."""
    found = re.fullmatch(r"([0-9.]+)(us|ms|s|m)", text)
    try:
        if found:
            return float(found[1]) * _UNITS_S[found[2]]
    except ValueError:
        pass
    raise wrong(f"'{text}' is no duration; expected a number with a unit, such as 20ms, 5s or 2m")


def milliseconds(text: str) -> float:
    """Return seconds of a number of milliseconds, or of a duration with a unit."""
    try:
        found = float(text) / 1000
    except ValueError:
        return duration(text)
    if found < 0:
        raise wrong(f"'{text}' is negative")
    return found


def objective(text: str) -> Objective:
    """Return the objective of 'p99=20ms' or 'average=5ms'."""
    name, equals, value = text.partition("=")
    found = re.fullmatch(r"p([0-9]+(?:\.[0-9]+)?)", name)
    if equals and name in ("average", "avg"):
        return Objective(-1.0, duration(value))
    if not equals or not found or not 0 < float(found[1]) < 100:
        raise wrong(f"'{text}' is no objective; expected for example p99=20ms or average=5ms")
    return Objective(float(found[1]) / 100, duration(value))


def number_range(text: str) -> tuple[float, float, float]:
    """Return start, end and step of 'start[:end[:step]]'; an end of 0 means no end."""
    parts = text.split(":")
    try:
        numbers = [float(each) for each in parts]
    except ValueError:
        numbers = []
    right = 1 <= len(numbers) <= 3 and all(0 <= each < math.inf for each in numbers)
    if not right or not numbers[0]:
        raise wrong(f"'{text}' is no range; expected START, START:END or START:END:STEP, from 1")
    start, end, step = [*numbers, *([numbers[0], 1.0][len(numbers) - 1 :])]
    if end and end < start:
        raise wrong(f"the range '{text}' ends below its start")
    if step <= 0:
        raise wrong(f"the step of the range '{text}' is not above 0")
    return start, end, step


def shape(text: str) -> tuple[str, tuple[int, ...]]:
    """Return name and dimensions of 'name:3,224,224'. A name may contain colons."""
    name, colon, numbers = text.rpartition(":")
    try:
        dims = tuple(int(each) for each in numbers.split(",") if each)
    except ValueError:
        dims = (-1,)
    if not colon or not name or min(dims, default=0) < 0:
        raise wrong(f"'{text}' is no shape; expected NAME:D1,D2,…, such as pixels:3,224,224")
    return name, dims


def header(text: str) -> tuple[str, str]:
    """Return name and value of 'Name: value'."""
    name, colon, value = text.partition(":")
    if not colon or not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name) or "\n" in text:
        raise wrong(f"'{text}' is no header; expected NAME:VALUE")
    return name, value.strip()


def parameter(text: str) -> tuple[str, str | int | float | bool]:
    """Return name and value of 'name:value:type'; the type is int, uint, double, bool or string."""
    name, _, rest = text.partition(":")
    value, colon, kind = rest.rpartition(":")
    try:
        if colon and name and kind in ("int", "uint"):
            return name, int(value)
        if colon and name and kind in ("double", "float"):
            return name, float(value)
        if colon and name and kind == "bool" and value.lower() in ("true", "false"):
            return name, value.lower() == "true"
        if colon and name and kind == "string":
            return name, value
    except ValueError:
        pass
    raise wrong(
        f"'{text}' is no parameter; expected NAME:VALUE:TYPE with a TYPE of int, uint, double, bool, string"
    )


def id_range(text: str) -> tuple[int, int]:
    """Return first and end of 'start[:end]'; an end of 0 means no end."""
    try:
        numbers = [int(each) for each in text.split(":")]
    except ValueError:
        numbers = []
    if (
        not 1 <= len(numbers) <= 2
        or numbers[0] < 1
        or (len(numbers) == 2 and numbers[1] <= numbers[0])
    ):
        raise wrong(f"'{text}' is no range of ids; expected START or START:END, from 1")
    return numbers[0], numbers[1] if len(numbers) == 2 else 0


def intervals(path: str) -> tuple[int, ...]:
    """Return the times in nanoseconds of a file with a line of microseconds for each request."""
    try:
        lines = Path(path).read_text().split()
        found = tuple(round(float(each) * 1000) for each in lines)
    except (OSError, ValueError) as error:
        raise wrong(f"cannot read the intervals in '{path}': {error}") from None
    if not found or min(found) < 0 or not sum(found):
        raise wrong(f"the file '{path}' needs a line with microseconds for each request")
    return found


def count(text: str) -> int:
    """Return a whole number from 1."""
    if not text.isdecimal() or not int(text):
        raise wrong(f"'{text}' is no whole number from 1")
    return int(text)


def whole(text: str) -> int:
    """Return a whole number from 0."""
    if not text.isdecimal():
        raise wrong(f"'{text}' is no whole number from 0")
    return int(text)
