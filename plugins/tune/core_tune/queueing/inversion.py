"""limit_from: the limit of settings that were measured at another rate."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from core_tune.observation import Observation, latency_of
from core_tune.queueing.limit import Traffic, capacity, latencies, latency, limit, value_of
from core_tune.queueing.machine import Machine

_FACTORS = (0.25, 12.0)  # by which executions may differ from the model
_EXACT = 1.01
_STEP = 1.1  # of the factor, for derivatives
_SURE = 0.02
_AWAY = 0.3  # deviation of the logarithm, by distance of the measured rate from the limit
_UNKNOWN = 0.2
_LEAST = 0.03
_MOST_OF_ROUND = 3000  # requests to a process that are simulated
_REQUESTS = 4  # times those of a prediction


def limit_from(seen: Observation, machine: Machine, traffic: Traffic) -> tuple[float, float]:
    """Return the limit that a measurement at a rate tells of, and the standard deviation of its logarithm."""
    factor = factor_of(seen, machine, traffic)
    traffic = dataclasses.replace(traffic, requests=_REQUESTS * traffic.requests)
    found = limit(scaled(machine, factor), seen.settings, traffic, seen.sent)
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
    alike, _ = _repeated(scaled(machine, factor), seen, traffic)
    slower = scaled(machine, factor * _STEP)
    changed = _repeated(slower, seen, traffic)[1] / seen.latency_s
    per_latency = math.log(_STEP) / max(abs(math.log(max(changed, 1e-9))), math.log(_STEP) / 3)
    other = limit(slower, seen.settings, traffic, found)
    per_factor = math.log(found / max(other, found / 2)) / math.log(_STEP)
    return abs(per_factor) * per_latency * _noise(seen.parts_s, alike)


def _noise(measured: Sequence[float], alike: Sequence[float]) -> float:
    """Return the standard deviation of the logarithm of the median of the rounds.

    alike   what the model gives for them: it knows which of them had more requests
    """
    if len(measured) < 2:
        return _UNKNOWN
    if len(alike) != len(measured):
        alike = [1.0] * len(measured)
    logs = [math.log(max(a, 1e-9) / max(b, 1e-9)) for a, b in zip(measured, alike, strict=True)]
    return max(1.25 * float(np.std(logs, ddof=1)) / math.sqrt(len(logs)), _LEAST)


def _is_slower(machine: Machine, seen: Observation, traffic: Traffic) -> bool:
    """Return whether the model is slower than what was measured."""
    if seen.overloaded:
        return capacity(machine, seen.settings, traffic) < seen.answered
    return _repeated(machine, seen, traffic)[1] > seen.latency_s


def _repeated(
    machine: Machine, seen: Observation, traffic: Traffic
) -> tuple[Sequence[float], float]:
    """Return the latencies of the rounds and of the measurement that the model gives for its requests.

    With the same arrivals, of rounds that begin and end as they did, neither chance nor the time that a queue
    needs to grow makes a difference.
    """
    workers, rounds = seen.settings.workers, []
    for due in seen.due:
        chosen = due[::workers][:_MOST_OF_ROUND]
        settle_s = seen.settle_s * min(1.0, _MOST_OF_ROUND * workers / len(due))
        found = latencies(machine, seen.settings, traffic, chosen)[chosen > settle_s]
        if len(found):
            rounds.append(found)
    if not rounds:
        return (), latency(machine, seen.settings, traffic, seen.sent)
    parts = [value_of(each, traffic.quantile) for each in rounds]
    together = np.concatenate(rounds)
    whole = value_of(together, traffic.quantile)
    return parts, latency_of(parts, whole, len(together), traffic.quantile)


def factor_of(seen: Observation, machine: Machine, traffic: Traffic) -> float:
    """Return the factor of all times with which the model behaves as measured."""
    low, high = _FACTORS
    while high > low * _EXACT:
        factor = math.sqrt(low * high)
        if _is_slower(scaled(machine, factor), seen, traffic):
            high = factor
        else:
            low = factor
    return math.sqrt(low * high)


def scaled(machine: Machine, factor: float) -> Machine:
    """Return a machine whose times are longer by a factor."""
    return dataclasses.replace(
        machine,
        base_s=machine.base_s * factor,
        row_s=machine.row_s * factor,
        front_s=machine.front_s * factor,
    )
