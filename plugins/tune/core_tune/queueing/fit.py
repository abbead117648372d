"""fit: the Machine that explains the measured executions best."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core_tune.observation import PROBABILITIES, Observation
from core_tune.queueing.machine import Array, Machine

_SATURATED = 0.8  # of the instances are busy
_SERIAL = 0.5  # of the time between client and instance: the rest is network and client
_LIKELY = (np.arange(500) + 0.5) / 500
_SAME = 1.02  # errors that differ by less are equal
_HOPE = 2.2
_SHARED = (0.0, 0.2, 0.4, 0.6, 0.75, 0.85, 0.95)
_CORES = (
    *(0.7, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0),
    *(10.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0),
)


def fit(observations: Sequence[Observation], processors: int = 1) -> Machine:
    """Return the machine.

    processors   threads of executions whose number the backend chooses
    As long as executions that run at once do not slow each other down, it expects that twice as many may run.
    """
    runs = _executions(observations, processors)
    # Of one number of threads, nothing follows for others.
    several = len(set(runs.threads)) > 1
    fits = [
        _fit(runs, cores, shared) for shared in (_SHARED if several else (0.0,)) for cores in _CORES
    ]
    least = min(each.error for each in fits)
    hopeful = [each for each in fits if each.error <= least * _SAME + 1e-4]
    most = _HOPE * float(runs.busy.max())
    best = max(
        (each for each in hopeful if each.cores <= most * each.used),
        key=lambda each: (each.cores, -each.error),
        default=min(hopeful, key=lambda each: each.error),
    )
    alone = best.alone
    return Machine(
        base_s=float(best.line[0]),
        row_s=float(best.line[1]),
        bends=_bends(runs.rows, alone / (best.line[0] + best.line[1] * runs.rows), runs.weight),
        cores=best.cores,
        front_s=_front(observations),
        spread=_spread(observations),
        shared=best.shared,
        processors=processors,
    )


@dataclass(frozen=True)
class _Runs:
    """Rows, seconds, busy instances, threads and weight of each measured batch size."""

    rows: Array
    seconds: Array
    busy: Array
    threads: Array
    weight: Array


@dataclass(frozen=True)
class _Fit:
    """The line of times over rows, of one thread without others; `alone` are the times without others.

    used   threads that the busiest executions keep busy on average, as a part of their own
    """

    error: float
    cores: float
    shared: float
    used: float
    line: Array
    alone: Array


def _fit(runs: _Runs, cores: float, shared: float) -> _Fit:
    part = 1 - shared + shared / runs.threads
    alone = runs.seconds / np.maximum(1.0, runs.busy / part / cores) / part
    line = _line(runs.rows, alone, runs.weight)
    wrong = np.log(alone / (line[0] + line[1] * runs.rows))
    error = float(np.sum(runs.weight * wrong**2) / np.sum(runs.weight))
    return _Fit(error, cores, shared, float(1 / part[np.argmax(runs.busy)]), line, alone)


def _executions(observations: Sequence[Observation], processors: int) -> _Runs:
    found = []
    for each in observations:
        k = each.settings.instances * each.settings.workers
        busy = 1 + min(each.busy, k) * (k - 1) / k
        total = sum(size.count for size in each.sizes)
        threads = each.settings.threads or processors
        # The square root: sizes that are rare are known well enough, and tell most about the line.
        found += [
            (size.rows, size.seconds, busy, threads, math.sqrt(size.count / total))
            for size in each.sizes
        ]
    return _Runs(*np.array(found, float).T)


def _line(rows: Array, seconds: Array, weight: Array) -> Array:
    """Return base and slope, neither negative, with the least relative error."""
    if len(set(rows)) == 1:  # one size: half of its time is for its rows
        mean = float(np.average(seconds, weights=weight))
        return np.array([mean / 2, mean / 2 / rows[0]])
    scale = np.sqrt(weight) / seconds
    columns = np.stack([scale, scale * rows], axis=1)
    found, *_ = np.linalg.lstsq(columns, np.sqrt(weight), rcond=None)
    if found.min() > 0:
        return np.asarray(found)
    wanted = np.sqrt(weight)
    singles = [float(each @ wanted / (each @ each)) for each in columns.T]
    errors = [
        float(np.sum((each * value - wanted) ** 2))
        for each, value in zip(columns.T, singles, strict=True)
    ]
    tiny = float(seconds.min()) * 1e-3
    return (
        np.array([singles[0], tiny / rows.max()])
        if errors[0] < errors[1]
        else np.array([tiny, singles[1]])
    )


def _bends(rows: Array, factors: Array, weight: Array) -> tuple[tuple[int, float], ...]:
    """Return how far each size is off the line; a size that was seen rarely less.

    The median: executions that slow each other down more than the model knows say nothing of others.
    """
    by_size: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for size, factor, each in zip(rows, factors, weight, strict=True):
        by_size[int(size)].append((math.log(factor), each))
    found = []
    for size in sorted(by_size):
        logs, weights = np.array(sorted(by_size[size])).T
        total = float(weights.sum())
        middle = float(logs[np.searchsorted(np.cumsum(weights), total / 2)])
        found.append((size, math.exp(middle * total / (total + 0.2))))
    return tuple(found)


def _front(observations: Sequence[Observation]) -> float:
    """Return the time of a request outside of the instances that no two requests share."""
    around = min(
        (each.client_s - each.server_s for each in observations if each.server_s), default=0.0
    )
    found = max(_SERIAL * around, 0.0)
    for each in observations:
        instances, workers = each.settings.instances * each.settings.workers, each.settings.workers
        saturated = each.clients > 2 * instances or each.overloaded
        if saturated and each.answered and each.busy < _SATURATED * instances:
            # The instances wait: something else is the limit.
            found = max(found, workers / each.answered)
    fastest = max(each.answered / each.settings.workers for each in observations)
    return min(found, 0.98 / fastest) if fastest else found


def _spread(observations: Sequence[Observation]) -> tuple[float, ...]:
    """Return how the times of executions differ: as the latencies of single requests do."""
    single = next(
        (each for each in observations if each.clients == 1 and not each.settings.delay_us), None
    )
    if single is None:
        return (1.0,)
    values = np.interp(_LIKELY, PROBABILITIES, np.asarray(single.spread_s))
    # Bounds: a single stall of the machine is no property of the model.
    factors = np.clip(values / values.mean(), 0.5, 20.0)
    return tuple(float(each) for each in factors)
