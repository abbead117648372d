"""Interval: a median of rounds, and the bounds between which the true median lies.

The bounds are order statistics. For n independent rounds, the true median lies between the k-th smallest and
the k-th largest value with probability 1 - 2 * P(Binomial(n, 1/2) < k). This assumes no distribution.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

WANTED = 0.95


@dataclass(frozen=True)
class Interval:
    """coverage: probability that the bounds enclose the true median; 0 for a single value."""

    median: float
    low: float
    high: float
    coverage: float

    @property
    def half_width(self) -> float:
        """Return half the distance of the bounds, as a part of the median."""
        return (self.high - self.low) / 2 / self.median if self.median else 0.0


def interval(values: Sequence[float]) -> Interval | None:
    """Return the narrowest interval with a coverage of 95 %, else the widest; None without values."""
    if not values:
        return None
    ordered = sorted(values)
    count = len(ordered)
    rank = 1
    while rank + 1 <= count // 2 and _coverage(count, rank + 1) >= WANTED:
        rank += 1
    return Interval(
        statistics.median(ordered), ordered[rank - 1], ordered[count - rank], _coverage(count, rank)
    )


def ratio(above: Sequence[float], below: Sequence[float]) -> Interval | None:
    """Return the interval of the ratios of rounds that ran one after the other; None without such pairs."""
    return interval([a / b for a, b in zip(above, below, strict=False) if b])


def _coverage(count: int, rank: int) -> float:
    if count < 2:
        return 0.0
    below: float = sum(math.comb(count, i) for i in range(rank)) / 2**count
    return 1 - 2 * below
