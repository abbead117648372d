"""Prediction: the limits of all settings by the queueing model, simulated anew where it matters."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from core_tune.queueing.limit import Traffic, capacity, limit
from core_tune.queueing.machine import Array, Machine
from core_tune.settings import Settings

_FLOOR = 1e-3  # of the capacity: for settings that miss the objective at any rate
_HOPELESS = 0.7  # of the highest limit: settings whose capacity is below are not simulated
_USED = 0.8  # of the capacity: limit of settings that are not simulated
_UNCHANGED = 0.02  # of the times, below which what was simulated is only scaled


class Prediction:
    """Logarithms of limits. `update` after each change of the machine."""

    def __init__(self, traffic: Traffic):
        self._traffic = traffic
        self._machine: Machine | None = None
        self._limits: dict[Settings, float] = {}
        self._capacities: dict[Settings, float] = {}

    def update(self, machine: Machine, settings: Sequence[Settings]) -> Array:
        """Return the logarithms of the limits, in the order of the settings."""
        most = {each: capacity(machine, each, self._traffic) for each in settings}
        if self._machine is None or _change(self._machine, machine) > _UNCHANGED:
            self._simulate(machine, most)
            self._machine = machine
        found = [
            self._limits[each] * most[each] / self._capacities[each]
            if each in self._limits
            else _USED * most[each]
            for each in settings
        ]
        logs: Array = np.log(np.array(found))
        return logs

    def _simulate(self, machine: Machine, most: dict[Settings, float]) -> None:
        """Simulate the settings whose capacity is not far below the best limit."""
        known, self._limits, self._capacities = self._limits, {}, most
        best = 0.0
        for each in sorted(most, key=lambda one: -most[one]):
            if most[each] < _HOPELESS * best:
                break
            near = known.get(each, 0.0)
            found = limit(machine, each, self._traffic, near if near > 0.1 * most[each] else 0.0)
            self._limits[each] = max(found, _FLOOR * most[each])
            best = max(best, found)


def _change(before: Machine, now: Machine) -> float:
    """Return the largest change of a time, as a part of it."""
    pairs = [
        (before.base_s + before.row_s, now.base_s + now.row_s),
        (before.base_s + 32 * before.row_s, now.base_s + 32 * now.row_s),
        (before.cores, now.cores),
        (before.front_s + 1e-6, now.front_s + 1e-6),
    ]
    return max(abs(math.log(b / a)) for a, b in pairs)
