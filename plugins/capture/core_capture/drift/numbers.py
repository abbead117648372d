"""NumberSketch: mean, quantiles and shares of the numbers of a tensor, in bounded memory.

Quantiles are those of a histogram whose cells grow by a factor (DDSketch): a quantile is off by at most 1 %
of its value. Sketches can be merged.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

ACCURACY = 0.01
MOST_CELLS = 2048
_GROWTH = math.log((1 + ACCURACY) / (1 - ACCURACY))
_LEAST = 1e-30  # magnitudes below it count as 0

Array = np.ndarray[Any, Any]


@dataclass
class NumberSketch:
    """What is known of the numbers that were added.

    count          numbers, NaN included
    nan            those that are NaN
    infinite       those that are infinite; they are in `count` only
    total, squares sums of the finite numbers and of their squares
    cells          number of a cell → how many finite numbers are in it; 0 is zero, positive cells have
                   positive numbers, negative cells negative ones
    """

    count: int = 0
    nan: int = 0
    infinite: int = 0
    total: float = 0.0
    squares: float = 0.0
    least: float = math.inf
    largest: float = -math.inf
    cells: dict[int, int] = field(default_factory=dict)

    def add(self, numbers: Array) -> None:
        """Add the elements of an array of numbers, of any shape."""
        flat = np.asarray(numbers, np.float64).ravel()
        self.count += flat.size
        self.nan += int(np.isnan(flat).sum())
        finite = flat[np.isfinite(flat)]
        self.infinite += flat.size - finite.size - int(np.isnan(flat).sum())
        if not finite.size:
            return
        self.total += float(finite.sum())
        self.squares += float(np.square(finite).sum())
        self.least = min(self.least, float(finite.min()))
        self.largest = max(self.largest, float(finite.max()))
        for cell, count in zip(*np.unique(_cells(finite), return_counts=True), strict=True):
            self.cells[int(cell)] = self.cells.get(int(cell), 0) + int(count)
        self._shrink()

    def merge(self, other: NumberSketch) -> None:
        for name in ("count", "nan", "infinite", "total", "squares"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.least, self.largest = min(self.least, other.least), max(self.largest, other.largest)
        for cell, count in other.cells.items():
            self.cells[cell] = self.cells.get(cell, 0) + count
        self._shrink()

    @property
    def finite(self) -> int:
        return self.count - self.nan - self.infinite

    @property
    def mean(self) -> float:
        """Return the mean of the finite numbers; NaN if there is none."""
        return self.total / self.finite if self.finite else math.nan

    @property
    def deviation(self) -> float:
        """Return the standard deviation of the finite numbers; NaN if there is none."""
        if not self.finite:
            return math.nan
        if math.isinf(self.squares):
            return math.inf
        return math.sqrt(max(0.0, self.squares / self.finite - self.mean * self.mean))

    @property
    def nan_share(self) -> float:
        return self.nan / self.count if self.count else 0.0

    def quantiles(self, shares: Sequence[float]) -> list[float]:
        """Return the quantiles of the finite numbers, for shares in ascending order; NaN if there is none."""
        if not self.finite:
            return [math.nan] * len(shares)
        found: list[float] = []
        below = 0
        cells = sorted(self.cells.items())
        at = 0
        for share in shares:
            rank = share * (self.finite - 1)
            while at < len(cells) - 1 and below + cells[at][1] <= rank:
                below += cells[at][1]
                at += 1
            found.append(min(self.largest, max(self.least, _middle(cells[at][0]))))
        return found

    def counts_up_to(self, edges: Sequence[float]) -> list[int]:
        """Return for each edge how many finite numbers are in cells up to that of the edge."""
        cells = np.array(sorted(self.cells), np.int64)
        sums = np.cumsum([0, *(self.cells[int(cell)] for cell in cells)])
        places = np.searchsorted(cells, _cells(np.asarray(edges, np.float64)), side="right")
        return [int(each) for each in sums[places]]

    def _shrink(self) -> None:
        """Join cells next to zero until there are MOST_CELLS at most: small ones lose accuracy first."""
        while len(self.cells) > MOST_CELLS:
            sign = 1 if sum(cell > 0 for cell in self.cells) * 2 >= len(self.cells) else -1
            side = sorted((cell for cell in self.cells if cell * sign > 0), key=abs)
            joined = side[: len(self.cells) - MOST_CELLS + 1]
            self.cells[joined[-1]] += sum(self.cells.pop(cell) for cell in joined[:-1])


_OFFSET = math.ceil(math.log(_LEAST) / _GROWTH) - 1


def _cells(finite: Array) -> Array:
    """Return the number of the cell of each finite number."""
    size = np.abs(finite)
    with np.errstate(divide="ignore"):
        level = np.ceil(np.log(size) / _GROWTH) - _OFFSET
    return (np.sign(finite) * np.where(size < _LEAST, 0, level)).astype(np.int64)


def _middle(cell: int) -> float:
    """Return a number in a cell whose relative distance to the others in it is at most ACCURACY."""
    if cell == 0:
        return 0.0
    upper = math.exp((abs(cell) + _OFFSET) * _GROWTH)
    return math.copysign(upper * (1 - ACCURACY), cell)
