"""Values of flags: lists of numbers, durations and words. Errors are argparse's: a line, and status 2."""

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


def kinds(text: str) -> list[str]:
    """Return the kinds of instances of 'cpu,gpu', as in the configuration."""
    found = [each.strip().upper() for each in text.split(",")]
    if wrong_ones := [each for each in found if each not in ("CPU", "GPU")]:
        raise wrong(f"'{wrong_ones[0].lower()}' is no kind of instances; expected cpu or gpu")
    return [f"KIND_{each}" for each in dict.fromkeys(found)]


def parts(text: str) -> list[int]:
    """Return the parts of 'full,quarter' that a batch waits for: 1 and 4."""
    known = {"full": 1, "quarter": 4}
    found = [each.strip() for each in text.split(",")]
    if wrong_ones := [each for each in found if each not in known]:
        raise wrong(f"'{wrong_ones[0]}' is no size to wait for; expected full or quarter")
    return sorted({known[each] for each in found})
