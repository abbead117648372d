"""Window: what a server did for a while. Estimator: the latency that the objective bounds, from averages.

Statistics have averages only. So a queueing model is fitted to the last windows and scaled to the average of
the newest one; the latency of the objective, such as its p99, is read off the model.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from core_tune.observation import PROBABILITIES, Observation, Size
from core_tune.queueing.arrivals import Arrivals
from core_tune.queueing.fit import fit
from core_tune.queueing.inversion import factor_of, scaled
from core_tune.queueing.limit import Traffic, capacity, latency
from core_tune.queueing.machine import Machine
from core_tune.settings import Settings

FOREVER = 1e6
_REMEMBERED = 12  # windows
_NEAR = 0.98  # of the capacity: above it, latencies grow without end


@dataclass(frozen=True)
class Window:
    """What a server did between two looks.

    rate      answers per second
    mean_s    average latency within the server
    sizes     executions by batch size
    at_s      when it ended
    seconds   its length
    """

    settings: Settings
    rate: float
    mean_s: float
    sizes: Sequence[Size]
    at_s: float
    seconds: float

    @property
    def requests(self) -> int:
        return round(self.rate * self.seconds)

    @property
    def rows(self) -> int:
        """Return the average rows of a request."""
        rows = sum(each.rows * each.count for each in self.sizes)
        return max(round(rows / max(self.requests, 1)), 1)

    def observed(self) -> Observation:
        """Return it as a measurement whose latency is the average."""
        return Observation(
            settings=self.settings,
            rate=self.rate,
            clients=0,
            sent=self.rate,
            answered=self.rate,
            latency_s=self.mean_s,
            parts_s=[self.mean_s],
            client_s=self.mean_s,
            server_s=self.mean_s,
            spread_s=[self.mean_s] * len(PROBABILITIES),
            sizes=self.sizes,
            seconds=self.seconds,
            at_s=self.at_s,
        )


class Estimator:
    """Learns from windows in their order.

    traffic      with the objective
    processors   threads of executions whose number the backend chooses
    """

    def __init__(self, traffic: Traffic, processors: int = 1):
        self._traffic, self._processors = traffic, processors
        self._recent: deque[Observation] = deque(maxlen=_REMEMBERED)
        self._of_settings: dict[Settings, Observation] = {}  # the last window of each
        self._machine: Machine | None = None

    def learn(self, window: Window) -> float:
        """Return the latency in seconds that the objective bounds, in this window. It needs executions."""
        seen = window.observed()
        self._traffic = dataclasses.replace(self._traffic, rows=window.rows)
        self._recent.append(seen)
        self._of_settings[window.settings] = seen
        every = {id(each): each for each in (*self._of_settings.values(), *self._recent)}
        machine = fit(list(every.values()), self._processors)
        average = dataclasses.replace(self._traffic, arrivals=Arrivals(-1, window.mean_s))
        self._machine = scaled(machine, factor_of(seen, machine, average))
        return self.latency(window.settings, window.rate)

    def latency(self, settings: Settings, rate: float) -> float:
        """Return the latency at a rate, by what is known.

        Above 98 % of the capacity it is FOREVER * rate / that limit.
        """
        assert self._machine is not None
        most = _NEAR * capacity(self._machine, settings, self._traffic)
        if rate > most:
            return FOREVER * rate / most
        return latency(self._machine, settings, self._traffic, rate)
