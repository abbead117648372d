"""Policy: choose the models to unload. Pure functions, and the age of the cache.

The order is that of GreedyDual-Size (Cao and Irani, USENIX 1997). The value of a model is its cost, the
seconds to load a byte of it, plus the level of the cache at its last use. The level is the value of the model
that was unloaded last. With equal costs this is the order of least recent use.

Load times vary on a busy machine. So costs that differ by less than a factor of about four count as equal.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Sizes = Mapping[str, int]

_STEP = 4.0  # between two classes of costs


@dataclass(frozen=True)
class Candidate:
    """A loaded model that may be unloaded.

    bytes       device → bytes that its unload frees
    last_used   time of its last request or its load, in seconds
    load_s      duration of its load in seconds
    priority    models with a smaller number go first
    busy        whether a request of it is running: its unload has to wait
    """

    key: str
    bytes: Sizes
    last_used: float
    load_s: float
    priority: int = 0
    busy: bool = False


class Level:
    """The level of the cache at any time. Times must not decrease from call to call of `rise`."""

    def __init__(self) -> None:
        self._times: list[float] = []
        self._levels: list[float] = []

    def rise(self, now: float, value: float) -> None:
        """Raise the level to the value of a model that is unloaded now; a smaller value changes nothing."""
        if not self._levels or value > self._levels[-1]:
            self._times.append(now)
            self._levels.append(value)

    def at(self, time: float) -> float:
        """Return the level at a time; 0 before the first unload."""
        index = bisect_right(self._times, time)
        return self._levels[index - 1] if index else 0.0

    def forget(self, before: float) -> None:
        """Drop what `at` does not need for times from `before` on."""
        index = max(0, bisect_right(self._times, before) - 1)
        del self._times[:index], self._levels[:index]


def value_of(candidate: Candidate, level: Level) -> float:
    """Return the value of a model: the larger, the longer it stays."""
    cost = candidate.load_s / max(1, sum(candidate.bytes.values()))
    if cost > 0:
        cost = _STEP ** round(math.log(cost, _STEP))
    return level.at(candidate.last_used) + cost


def victims(
    missing: Sizes, candidates: Sequence[Candidate], level: Level
) -> list[Candidate] | None:
    """Return the models whose unload frees at least `missing` on every device; None if all cannot.

    missing   device → bytes; the devices with positive numbers count
    Models without a running request go first, then those of small priority, then those of small value; of
    two with one value, the one used longer ago. No model of the result is superfluous.
    """
    left = {device: size for device, size in missing.items() if size > 0}
    ordered = sorted(
        candidates,
        key=lambda each: (
            each.busy,
            each.priority,
            value_of(each, level),
            each.last_used,
            each.key,
        ),
    )
    chosen: list[Candidate] = []
    for each in ordered:
        if not left:
            break
        if any(each.bytes.get(device, 0) > 0 for device in left):
            chosen.append(each)
            left = _after(left, each)
    if left:
        return None
    # A large one may have made smaller ones before it superfluous; the most valuable ones stay.
    for each in reversed(chosen[:-1]):
        rest = [other for other in chosen if other is not each]
        if _free(missing, rest):
            chosen = rest
    return chosen


def _after(left: Sizes, freed: Candidate) -> dict[str, int]:
    after = {device: size - freed.bytes.get(device, 0) for device, size in left.items()}
    return {device: size for device, size in after.items() if size > 0}


def _free(missing: Sizes, chosen: Sequence[Candidate]) -> bool:
    return all(
        sum(each.bytes.get(device, 0) for each in chosen) >= size
        for device, size in missing.items()
        if size > 0
    )
