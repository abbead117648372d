"""Observation: what one measurement has found. Meter: what measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from core_tune.settings import Settings

PROBABILITIES = (0.01, *(i / 20 for i in range(1, 20)), 0.97, 0.98, 0.99, 0.995, 0.998, 0.999)
_KEPT = 0.93
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

    @property
    def overloaded(self) -> bool:
        """Return whether the server answered clearly less than was sent: its queue grew."""
        return self.clients == 0 and self.answered + _EDGE / self.seconds < _KEPT * self.sent

    @property
    def busy(self) -> float:
        """Return how many instances executed on average."""
        return sum(each.count * each.seconds for each in self.sizes) / self.seconds


class Refused(Exception):
    """Settings that a server refuses, with its reason."""


class Meter(Protocol):
    """Measures one configuration of a model at a time."""

    def at_rate(self, settings: Settings, rate: float) -> Observation:
        """Send requests at a rate. Raises Refused, or CoreError if requests fail or the server is lost."""

    def in_flight(self, settings: Settings, clients: int) -> Observation:
        """Keep so many requests in flight. Raises like `at_rate`."""

    def elapsed_s(self) -> float:
        """Return the time since the search began."""
