"""Statistics of several rounds: median, spread, and the ratio of two servers."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence


def median(values: Sequence[float]) -> float:
    """Return the median of the rounds. Raises statistics.StatisticsError without any."""
    return statistics.median(values)


def spread(values: Sequence[float]) -> float:
    """Return the range divided by the median: 0.1 means that the rounds are within 10 %."""
    middle = median(values)
    return (max(values) - min(values)) / middle if middle else 0.0


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float | None:
    """Return the median of ours divided by theirs, round by round; None without a common round.

    Both sides of one round ran under the same conditions.
    """
    quotients = [a / b for a, b in zip(ours, theirs, strict=False) if b]
    return median(quotients) if quotients else None


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest value that at least `percent` of all values do not exceed; 0 without values."""
    if not values:
        return 0.0
    ordered = sorted(values)
    return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)]
