"""Arrivals: when the requests of a round are due, for the load generator and for the simulation of it.

A round begins with requests that are due at once, so that its queue is about as long as those near the limit
are on average. A queue that begins empty takes long to grow: a round would end before it has, and its
latencies would be too low. The longer the objective is, measured in executions, the longer that takes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

Array = np.ndarray

_MOST_WAIT = 0.8  # of the objective
_MOST_AT_ONCE = 256
_TYPICAL = 2893
"""The number of random times whose first 500 to 4,000 have the percentiles of endless ones: limits of a queue
with one instance are within 4 % from 2,000 on, for objectives of 4 to 64 executions. Others are off by 10 %.
"""


@dataclass(frozen=True)
class Arrivals:
    """Times between requests, with an average of 1.

    intervals   of recorded traffic, which is repeated; () for random ones, as of many independent clients
    quantile    of the latency that the objective bounds; -1 for the average
    seconds     the bound
    """

    quantile: float
    seconds: float
    intervals: tuple[float, ...] = ()
    _recorded: Array = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_recorded", np.asarray(self.intervals))

    def due(self, rate: float, seconds: float, number: int) -> Array:
        """Return the times of the requests of a round, ascending, from 0 to `seconds`.

        number   of the round: each has other times, recorded ones from where the round before has ended
        """
        expected = math.ceil(rate * seconds)
        count = expected + math.ceil(4 * math.sqrt(expected)) + 8
        times = np.cumsum(self._gaps(count, number, expected)) / rate
        while times[-1] <= seconds:  # recorded traffic has busy times
            count *= 2
            times = np.cumsum(self._gaps(count, number, expected)) / rate
        found: Array = np.concatenate([np.zeros(self.at_once(rate)), times[times <= seconds]])
        return found

    def counted(self, rate: float, count: int) -> Array:
        """Return the times of so many requests, behind those at once."""
        found: Array = np.concatenate(
            [np.zeros(self.at_once(rate)), np.cumsum(self._gaps(count, _TYPICAL, 0)) / rate]
        )
        return found

    def at_once(self, rate: float) -> int:
        """Return the requests that are due at the beginning.

        Waits near the limit are distributed exponentially, so the average one follows from a quantile.
        """
        part = _MOST_WAIT
        if self.quantile >= 0:
            part = min(1 / -math.log(max(1 - self.quantile, 1e-6)), _MOST_WAIT)
        return min(int(rate * part * self.seconds), _MOST_AT_ONCE)

    def _gaps(self, count: int, number: int, each: int) -> Array:
        """Return so many times between requests; those of recorded traffic from `number` * `each` on."""
        if not len(self._recorded):
            return _random(count, number)
        at = (number * each) % len(self._recorded)
        return np.resize(np.roll(self._recorded, -at), count)


@lru_cache(maxsize=16)
def _random(count: int, number: int) -> Array:
    return np.random.default_rng([number, 5]).exponential(1.0, count)
