"""Several rounds → one figure, how far they lay apart, and how two servers compare."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence


def median(values: Sequence[float]) -> float:
    """The middle of the rounds; raises statistics.StatisticsError without any."""
    return statistics.median(values)


def spread(values: Sequence[float]) -> float:
    """Largest less smallest, over the median: 0.1 means that the rounds lie within 10 %."""
    middle = median(values)
    return (max(values) - min(values)) / middle if middle else 0.0


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float | None:
    """The median of ours over theirs, round by round; None when they have no round in common.

    Round by round, since both sides of one round saw the same machine.
    """
    quotients = [a / b for a, b in zip(ours, theirs, strict=False) if b]
    return median(quotients) if quotients else None


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that at least `percent` of all do not exceed; 0 without values."""
    if not values:
        return 0.0
    ordered = sorted(values)
    return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)]
