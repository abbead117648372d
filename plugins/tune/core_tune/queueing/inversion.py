"""limit_from: the limit of settings that were measured at another rate."""

from __future__ import annotations

import dataclasses
import math

from core_tune.observation import Observation
from core_tune.queueing.limit import Traffic, capacity, latency, limit
from core_tune.queueing.machine import Machine

_FACTORS = (0.25, 12.0)  # by which executions may differ from the model
_EXACT = 1.01
_STEP = 1.1  # of the factor, for derivatives
_SURE = 0.02
_AWAY = 0.3  # deviation of the logarithm, by distance of the measured rate from the limit
_UNKNOWN = 0.2
_LEAST = 0.03


def limit_from(seen: Observation, machine: Machine, traffic: Traffic) -> tuple[float, float]:
    """Return the limit that a measurement at a rate tells of, and the standard deviation of its logarithm.

    Looks for the factor of all times with which the model behaves as measured.
    """
    low, high = _FACTORS
    while high > low * _EXACT:
        factor = math.sqrt(low * high)
        if _is_slower(_scaled(machine, factor), seen, traffic):
            high = factor
        else:
            low = factor
    factor = math.sqrt(low * high)
    found = limit(_scaled(machine, factor), seen.settings, traffic)
    if not found:
        return 0.0, 1.0
    away = _AWAY * abs(math.log(seen.sent / found))
    return found, math.hypot(_SURE, away, _from_noise(seen, machine, factor, found, traffic))


def _from_noise(
    seen: Observation, machine: Machine, factor: float, found: float, traffic: Traffic
) -> float:
    """Return how much the noise of the measured latency changes the logarithm of the limit."""
    if seen.overloaded:
        return 0.0
    slower = _scaled(machine, factor * _STEP)
    changed = latency(slower, seen.settings, traffic, seen.sent) / seen.latency_s
    per_latency = math.log(_STEP) / max(abs(math.log(max(changed, 1e-9))), math.log(_STEP) / 3)
    other = limit(slower, seen.settings, traffic, found)
    per_factor = math.log(found / max(other, found / 2)) / math.log(_STEP)
    return abs(per_factor) * per_latency * _noise(seen)


def _noise(seen: Observation) -> float:
    """Return the standard deviation of the logarithm of the median of the rounds."""
    logs = [math.log(max(each, 1e-9)) for each in seen.parts_s]
    if len(logs) < 2:
        return _UNKNOWN
    mean = sum(logs) / len(logs)
    spread = math.sqrt(sum((each - mean) ** 2 for each in logs) / (len(logs) - 1))
    return max(1.25 * spread / math.sqrt(len(logs)), _LEAST)


def _is_slower(machine: Machine, seen: Observation, traffic: Traffic) -> bool:
    """Return whether the model is slower than what was measured."""
    if seen.overloaded:
        return capacity(machine, seen.settings, traffic) < seen.answered
    return latency(machine, seen.settings, traffic, seen.sent) > seen.latency_s


def _scaled(machine: Machine, factor: float) -> Machine:
    return dataclasses.replace(
        machine,
        base_s=machine.base_s * factor,
        row_s=machine.row_s * factor,
        front_s=machine.front_s * factor,
    )
