"""Prediction: the limits of all settings by the queueing model, simulated anew where it matters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from core_tune.queueing.limit import Traffic, capacity, limit
from core_tune.queueing.machine import Array, Machine
from core_tune.settings import Settings

_FLOOR = 1e-3  # of the capacity: for settings that miss the objective at any rate
_HOPELESS = 0.7  # of the highest limit: settings whose capacity is below are not simulated
_USED = 0.8  # of the capacity: limit of settings that are not simulated
_UNCHANGED = 0.03  # of the times, below which what was simulated is only scaled


class Prediction:
    """Logarithms of limits. `update` after each change of the machine."""

    def __init__(self, traffic: Traffic):
        self._traffic = traffic
        self._machines: Mapping[str, Machine] = {}
        self._limits: dict[Settings, float] = {}
        self._capacities: dict[Settings, float] = {}

    def update(self, machines: Mapping[str, Machine], settings: Sequence[Settings]) -> Array:
        """Return the logarithms of the limits, in the order of the settings.

        machines   by kind, one for each kind of the settings
        """
        most = {each: capacity(machines[each.kind], each, self._traffic) for each in settings}
        if _change(self._machines, machines) > _UNCHANGED:
            self._simulate(machines, most)
            self._machines = dict(machines)
        found = [
            self._limits[each] * most[each] / self._capacities[each]
            if each in self._limits
            else _USED * most[each]
            for each in settings
        ]
        logs: Array = np.log(np.array(found))
        return logs

    def _simulate(self, machines: Mapping[str, Machine], most: dict[Settings, float]) -> None:
        """Simulate the settings whose capacity is not far below the best limit."""
        known, before = self._limits, self._capacities
        self._limits, self._capacities = {}, most
        parts: dict[tuple[int, int], float] = {}  # limit by capacity, by delay and batch
        best = 0.0
        for each in sorted(most, key=lambda one: -most[one]):
            if most[each] < _HOPELESS * best:
                break
            part = known[each] / before[each] if each in known else parts.get(_alike(each), 0.0)
            near = part * most[each] if part > 0.1 else 0.0
            found = limit(machines[each.kind], each, self._traffic, near)
            self._limits[each] = max(found, _FLOOR * most[each])
            parts[_alike(each)] = found / most[each]
            best = max(best, found)


def _alike(settings: Settings) -> tuple[int, int]:
    return settings.delay_us, settings.batch


def _change(before: Mapping[str, Machine], now: Mapping[str, Machine]) -> float:
    """Return the largest change of a time, as a part of it."""
    if before.keys() != now.keys():
        return math.inf
    return max(_change_of(before[kind], now[kind]) for kind in now)


def _change_of(before: Machine, now: Machine) -> float:
    pairs = [
        (before.base_s + before.row_s, now.base_s + now.row_s),
        (before.base_s + 32 * before.row_s, now.base_s + 32 * now.row_s),
        (before.cores, now.cores),
        (before.front_s + 1e-6, now.front_s + 1e-6),
        (1.1 - before.shared, 1.1 - now.shared),
    ]
    return max(abs(math.log(b / a)) for a, b in pairs)
