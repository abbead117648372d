"""Observation: what one measurement has found. Meter: what measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from core_tune.settings import Settings

Array = np.ndarray

PROBABILITIES = (0.01, *(i / 20 for i in range(1, 20)), 0.97, 0.98, 0.99, 0.995, 0.998, 0.999)
_KEPT = 0.93
_FEW = 3  # requests above the quantile in a round
_EDGE = 4  # requests at the ends of rounds, that fall into one by chance


@dataclass(frozen=True)
class Size:
    """Executions of one batch size: their count and average time."""

    rows: int
    count: int
    seconds: float


@dataclass(frozen=True)
class Observation:
    """One configuration under one load.

    rate        requests per second that were asked for; 0 for a closed loop
    sent        requests per second that were due
    clients     requests in flight at once, of a closed loop; 0 for a rate
    answered    answers per second
    latency_s   latency that the objective bounds: the median of the rounds
    parts_s     the same of each round
    client_s    average latency at the client
    server_s    average latency within the server; 0 if it says nothing
    spread_s    latency at PROBABILITIES
    sizes       executions by batch size
    seconds     measured time
    at_s        when it began, since the search began
    due         when the requests of each round were due, for a rate
    settle_s    from when on in a round latencies count
    """

    settings: Settings
    rate: float
    clients: int
    sent: float
    answered: float
    latency_s: float
    parts_s: Sequence[float]
    client_s: float
    server_s: float
    spread_s: Sequence[float]
    sizes: Sequence[Size]
    seconds: float
    at_s: float
    due: Sequence[Array] = field(default=(), repr=False, compare=False)
    settle_s: float = 0.0

    @property
    def overloaded(self) -> bool:
        """Return whether the server answered clearly less than was sent: its queue grew."""
        return self.clients == 0 and self.answered + _EDGE / self.seconds < _KEPT * self.sent

    @property
    def busy(self) -> float:
        """Return how many instances executed on average."""
        return sum(each.count * each.seconds for each in self.sizes) / self.seconds


def latency_of(parts_s: Sequence[float], together_s: float, count: int, quantile: float) -> float:
    """Return the latency of a measurement: the median of its rounds.

    together_s   of all rounds as one, which counts if a round has few requests above the quantile
    count        requests of all rounds
    """
    few = count / len(parts_s) * (1 - quantile) < _FEW
    return together_s if few else float(np.median(parts_s))


class Refused(Exception):
    """Settings that a server refuses, with its reason."""


class Meter(Protocol):
    """Measures one configuration of a model at a time."""

    def at_rate(self, settings: Settings, rate: float, longer: float = 1.0) -> Observation:
        """Send requests at a rate, in rounds that are longer than usual by a factor.

        Raises Refused, or CoreError if requests fail or the server is lost.
        """

    def in_flight(self, settings: Settings, clients: int) -> Observation:
        """Keep so many requests in flight. Raises like `at_rate`."""

    def elapsed_s(self) -> float:
        """Return the time since the search began."""
