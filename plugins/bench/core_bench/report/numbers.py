"""Texts of times, counts and intervals for people."""

from __future__ import annotations

from core_bench.measure.spread import Interval


def time_text(seconds: float) -> str:
    """Return three digits with a unit: 812 µs, 4.21 ms, 1.30 s."""
    for unit, factor in (("µs", 1e6), ("ms", 1e3)):
        if seconds * factor < 999.5:
            return f"{_three(seconds * factor)} {unit}"
    return f"{_three(seconds)} s"


def count_text(number: float) -> str:
    """Return a number with three digits, with four from 1,000 on: 12,340, 4.56."""
    if number >= 1000:
        digits = max(len(str(int(number))) - 4, 0)
        return f"{round(number, -digits):,.0f}"
    return _three(number)


def spread_text(found: Interval | None) -> str:
    """Return the distance of the bounds from the median in percent: ±3 %, or -2 +9 %."""
    if found is None or not found.median or not found.coverage:
        return ""
    below = (found.median - found.low) / found.median * 100
    above = (found.high - found.median) / found.median * 100
    if abs(below - above) < 1:
        return f"±{max(below, above):.1f} %"
    return f"-{below:.1f} +{above:.1f} %"


def _three(number: float) -> str:
    if number >= 99.95:
        return f"{number:.0f}"
    return f"{number:.1f}" if number >= 9.995 else f"{number:.2f}"
