"""limit: the highest rate at which a configuration keeps an objective, by simulation."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from core_tune.queueing.arrivals import Arrivals
from core_tune.queueing.machine import Array, Machine
from core_tune.queueing.simulation import simulate
from core_tune.settings import Settings

_EXACT = 0.01
_LOWEST = 1e-3  # of the capacity
_SEEN_FROM = 0.1  # of the requests: the first ones find a queue that is not yet that of the rate


@dataclass(frozen=True, eq=False)
class Traffic:
    """What is asked of a model.

    rows        of a request
    most_rows   of an execution: max_batch_size, or 1
    arrivals    with the objective
    requests    of a simulation
    chance      numbers from 0 to 1, that choose how long an execution takes
    """

    rows: int
    most_rows: int
    arrivals: Arrivals
    requests: int = 1000
    chance: Array = field(default_factory=lambda: np.random.default_rng(2).random(997))

    @property
    def quantile(self) -> float:
        """Return that of the latency that the objective bounds; -1 for the average."""
        return self.arrivals.quantile

    @property
    def seconds(self) -> float:
        """Return the bound."""
        return self.arrivals.seconds


def batch_of(settings: Settings, traffic: Traffic) -> tuple[tuple[int, ...], int]:
    """Return the preferred requests of a batch, and those that it may have once the oldest is late."""
    sizes = tuple(sorted({max(1, each // traffic.rows) for each in settings.sizes})) or (1,)
    full = sizes[-1]
    return sizes, max(full, traffic.most_rows // traffic.rows) if settings.delay_us else full


def capacity(machine: Machine, settings: Settings, traffic: Traffic) -> float:
    """Return the requests per second above which the queue grows without end."""
    _, most = batch_of(settings, traffic)
    seconds = machine.table(settings, traffic.rows, most)[-1]
    found = float(np.max(settings.instances * np.arange(1, most + 1) / seconds))
    each = min(found, 1 / machine.front_s) if machine.front_s else found
    return settings.workers * each


def latencies(machine: Machine, settings: Settings, traffic: Traffic, due: Array) -> Array:
    """Return the latency in seconds of each request to one process."""
    sizes, most = batch_of(settings, traffic)
    table = machine.table(settings, traffic.rows, most)
    at = (traffic.chance * len(machine.spread)).astype(int)
    factors = np.asarray(machine.spread)[at].tolist()
    return simulate(due, machine.front_s, table, sizes, settings.delay_us / 1e6, factors)


def latency(machine: Machine, settings: Settings, traffic: Traffic, rate: float) -> float:
    """Return the latency of the objective in seconds at a rate."""
    due = traffic.arrivals.counted(rate / settings.workers, traffic.requests)
    found = latencies(machine, settings, traffic, due)
    ignored = len(due) - traffic.requests + int(_SEEN_FROM * traffic.requests)
    return value_of(found[ignored:], traffic.quantile)


def value_of(seconds: Array, quantile: float) -> float:
    """Return a quantile, or the average for -1."""
    if quantile < 0:
        return float(seconds.mean())
    rank = min(int(np.ceil(quantile * len(seconds))), len(seconds)) - 1
    return float(np.partition(seconds, rank)[rank])


def limit(machine: Machine, settings: Settings, traffic: Traffic, near: float = 0.0) -> float:
    """Return the highest rate within the objective, to 1 %; 0 if even single requests miss it.

    near   a rate that is probably near it; 0 if none is known
    """
    most = capacity(machine, settings, traffic) * 1.05
    least = most * _LOWEST

    def keeps(rate: float) -> bool:
        return latency(machine, settings, traffic, rate) <= traffic.seconds

    # Steps that grow, from the expected limit to one that is on the other side of it.
    rate, step = min(near or 0.8 * most, most), 1.04 if near else 1.2
    if keeps(rate):
        low = high = rate
        while low == high:
            if rate >= most:
                return most
            rate, step = min(rate * step, most), step * step
            low, high = (rate, rate) if keeps(rate) else (low, rate)
    else:
        low = high = rate
        while low == high:
            if rate <= least:
                return 0.0
            rate, step = max(rate / step, least), step * step
            low, high = (rate, high) if keeps(rate) else (rate, rate)
    while high > low * (1 + _EXACT):
        rate = (low * high) ** 0.5
        low, high = (rate, high) if keeps(rate) else (low, rate)
    return low
