"""The difference of two sketches of one tensor."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core_capture.drift.numbers import NumberSketch
from core_capture.drift.sketches import Key, Sketches, TensorSketch

LEAST = 200  # elements on each side for a verdict
_BINS = 10


@dataclass(frozen=True)
class Drift:
    """How a tensor differs between two windows.

    before, now   the sketches; None if a window does not have the tensor
    psi           population stability index, the larger one of those of the deciles of `before` and of its
                  classes. Below 0.1 is little, above 0.2 is much; NaN without a verdict
    """

    key: Key
    before: TensorSketch | None
    now: TensorSketch | None
    psi: float

    def drifts(self, threshold: float) -> bool:
        """Return whether the index is above the threshold, or one window lacks the tensor."""
        return self.before is None or self.now is None or self.psi > threshold


def compare(before: Sketches, now: Sketches) -> list[Drift]:
    """Return the drift of each tensor of two windows, the largest first."""
    found = []
    for key in before.found.keys() | now.found.keys():
        old, new = before.found.get(key), now.found.get(key)
        psi = math.nan if old is None or new is None else _psi(old, new)
        found.append(Drift(key, old, new, psi))
    found.sort(key=lambda each: (-_rank(each.psi), each.key))
    return found


def _rank(psi: float) -> float:
    return -1.0 if math.isnan(psi) else psi


def _psi(old: TensorSketch, new: TensorSketch) -> float:
    if min(old.numbers.count, new.numbers.count) < LEAST:
        return math.nan
    indices = [_of_numbers(old.numbers, new.numbers)]
    if old.classes.counts and new.classes.counts:
        indices.append(_index(old.classes.counts, new.classes.counts))
    return max(indices)


def _of_numbers(old: NumberSketch, new: NumberSketch) -> float:
    edges = sorted({*old.quantiles([i / _BINS for i in range(1, _BINS)])})
    return _index(_bins(old, edges), _bins(new, edges))


def _bins(sketch: NumberSketch, edges: Sequence[float]) -> dict[str, int]:
    """Return how many numbers are up to each edge and above the last, NaN, and infinite."""
    found = {"nan": sketch.nan, "infinite": sketch.infinite}
    up_to = [*sketch.counts_up_to(edges), sketch.finite]
    below = 0
    for number, count in enumerate(up_to):
        found[str(number)] = count - below
        below = count
    return found


def _index(before: Mapping[str, int], now: Mapping[str, int]) -> float:
    """Return the population stability index of two lists of counts, less what chance alone makes of it."""
    names = [name for name in before.keys() | now.keys() if before.get(name) or now.get(name)]
    old, new = (sum(each.get(name, 0) for name in names) for each in (before, now))
    total = 0.0
    for name in names:
        # Half a count more everywhere: a share of 0 has no logarithm.
        p = (before.get(name, 0) + 0.5) / (old + 0.5 * len(names))
        q = (now.get(name, 0) + 0.5) / (new + 0.5 * len(names))
        total += (q - p) * math.log(q / p)
    return max(0.0, total - (len(names) - 1) * (1 / old + 1 / new))
