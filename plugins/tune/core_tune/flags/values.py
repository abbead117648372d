"""Values of flags: lists of numbers and of durations. Errors are argparse's: a line, and status 2."""

from __future__ import annotations

from core_bench.flags.values import count, duration, wrong


def counts(text: str) -> list[int]:
    """Return ascending numbers of '1,2,4'."""
    return sorted({count(each.strip()) for each in text.split(",")})


def durations(text: str) -> list[int]:
    """Return ascending microseconds of '0,500us,2ms'."""
    found = [0.0 if each.strip() == "0" else duration(each.strip()) for each in text.split(",")]
    return sorted({round(each * 1e6) for each in found})


def minutes(text: str) -> float:
    """Return minutes above 0."""
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < 1e4:
        raise wrong(f"'{text}' is no number of minutes above 0")
    return found
