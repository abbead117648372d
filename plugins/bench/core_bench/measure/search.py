"""Which levels are measured: all, a range until the objective is missed, a binary search, the knee."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from core_bench.measure.result import CaseResult
from core_bench.measure.rounds import Measurement, meets
from core_bench.plan import Level, Plan

GROWTH = 1.05  # of the rate, by twice the load; with less it has stopped growing
_EXACT = 0.05  # the knee is searched until its bounds are so near each other
_QUICK_ROUNDS = 3  # of each level on the way to the knee
_MOST_LEVELS = 100  # of a range without an end
_MOST = 100_000  # at once; more connections than ports of one address are of no use


def search(plan: Plan, measurement: Measurement) -> CaseResult | None:
    """Measure; return the best case of a search, or None without one. Raises Ended."""
    if plan.search == "until":
        return _until(plan, measurement)
    if plan.search == "binary":
        return _binary(plan, measurement)
    if plan.search == "knee":
        return _knee(plan, measurement)
    measurement.measure(plan.levels)
    return None


def _until(plan: Plan, measurement: Measurement) -> CaseResult | None:
    best = None
    for level in _upwards(plan):
        cases = measurement.measure([level])
        if not all(meets(each, plan.objective) for each in cases):
            break
        best = cases[0]
    return best


def _upwards(plan: Plan) -> Iterator[Level]:
    """Yield the levels of the plan; behind the only one of a range without an end, more of them."""
    yield from plan.levels
    if len(plan.levels) == 1:
        for number in range(1, _MOST_LEVELS):
            value = plan.levels[0].value + number * plan.step
            yield dataclasses.replace(plan.levels[0], value=value)


def _binary(plan: Plan, measurement: Measurement) -> CaseResult | None:
    low, high = plan.levels[0].value, plan.levels[-1].value
    best = None
    while low <= high:
        steps = int((high - low) / plan.step)
        value = low + steps // 2 * plan.step
        case = measurement.measure([dataclasses.replace(plan.levels[0], value=value)])[0]
        if meets(case, plan.objective):
            best, low = case, value + plan.step
        else:
            high = value - plan.step
    return best


def _knee(plan: Plan, measurement: Measurement) -> CaseResult | None:
    """Double the load while it is right and the rate grows, then search between the last two levels.

    The best level is measured again with all rounds.
    """
    level, best, missed = plan.levels[0], None, None
    while level.value <= _MOST:
        case = measurement.measure([level], _QUICK_ROUNDS)[0]
        if not meets(case, plan.objective):
            missed = case
            break
        if best and not level.open and _rate(case) < GROWTH * _rate(best):
            break
        best, level = case, dataclasses.replace(level, value=level.value * 2)
    while best and missed and not _near(best.level, missed.level):
        value = (best.level.value + missed.level.value) / 2
        value = value if level.open else float(int(value))
        case = measurement.measure([dataclasses.replace(level, value=value)], _QUICK_ROUNDS)[0]
        if meets(case, plan.objective):
            best = case
        else:
            missed = case
    return measurement.measure([best.level])[0] if best else None


def _near(good: Level, bad: Level) -> bool:
    distance = bad.value - good.value
    return distance <= _EXACT * good.value or (not good.open and distance <= 1)


def _rate(case: CaseResult) -> float:
    found = case.rate()
    return found.median if found else 0.0
