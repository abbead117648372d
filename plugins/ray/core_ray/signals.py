"""LoadSignals: how long a request of a server would wait, and how much of its capacity is used."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from core.errors import CoreError
from core_ray.scaling import BUSY, WAIT_MS

if TYPE_CHECKING:
    import core

_WAIT = "core_inference_wait_estimate_seconds"
_IN_FLIGHT = "core_inference_in_flight"
_PHASES = ("compute_input", "compute_infer", "compute_output")
_ENOUGH = 10  # executions of a batch size, after which their mean time is trusted

Version = tuple[str, str]
"""Name and version of a model."""

Executions = Mapping[int, tuple[int, int]]
"""Rows of an execution → how many there were, and their nanoseconds together."""


class LoadSignals:
    """The signals of one server. Call `read` from one thread at a time, not from the server's own.

    clock   returns nanoseconds
    """

    def __init__(self, server: core.Server, clock: Callable[[], int] = time.monotonic_ns):
        self._server = server
        self._clock = clock
        self._read_ns = clock()
        self._executed: dict[Version, Executions] = _executed(server)

    def read(self) -> dict[str, float]:
        """Return the largest values of all models: the estimated wait of a new request in milliseconds, and
        the share of its capacity that a model has used since the last call, 0 to 1.

        Capacity is the rows that the instances execute at the batch size with the best throughput so far. A
        model whose executions have not ended, such as a long stream, counts by its requests in flight. An
        ensemble has no instances, and counts by the models of its steps.
        """
        now_ns = self._clock()
        passed_ns, self._read_ns = now_ns - self._read_ns, now_ns
        before, self._executed = self._executed, _executed(self._server)
        waits_s, in_flight = self._gauges(_WAIT, _IN_FLIGHT)
        shares = [0.0]
        for version, executed in self._executed.items():
            work_ns = new_rows(before.get(version, {}), executed) * row_ns(executed)
            requests = in_flight.get(version, 0.0)
            if (work_ns or requests) and (instances := self._instances(version)):
                shares.append((work_ns / max(passed_ns, 1) or requests) / instances)
        return {WAIT_MS: 1000 * max(waits_s.values(), default=0.0), BUSY: min(1.0, max(shares))}

    def _gauges(self, *names: str) -> list[dict[Version, float]]:
        found: dict[str, dict[Version, float]] = {name: {} for name in names}
        for family in self._server.metrics():
            if family.name in found:
                for each in family.samples:
                    version = each.labels["model"], each.labels["version"]
                    found[family.name][version] = each.value
        return [found[name] for name in names]

    def _instances(self, version: Version) -> int:
        """Return how many instances a model has; 0 for an ensemble."""
        name, number = version
        try:
            groups: list[dict[str, Any]] = self._server.config(name, int(number))["instance_group"]
        except CoreError:  # unloaded meanwhile
            return 1
        return sum(int(each["count"]) * max(1, len(each.get("gpus", ()))) for each in groups)


def _executed(server: core.Server) -> dict[Version, Executions]:
    """Return the executions of each model version since its load."""
    return {
        (each["name"], each["version"]): {
            int(size["batch_size"]): (
                int(size["compute_infer"]["count"]),
                sum(int(size[phase]["ns"]) for phase in _PHASES),
            )
            for size in each["batch_stats"]
        }
        for each in server.statistics()
    }


def new_rows(before: Executions, now: Executions) -> int:
    """Return the rows executed between two readings. Counts of a model that was loaded anew start at 0."""
    rows = 0
    for size, (count, _) in now.items():
        known = before.get(size, (0, 0))[0]
        rows += size * (count - known if count >= known else count)
    return rows


def row_ns(executed: Executions) -> float:
    """Return the nanoseconds for a row at the batch size with the best throughput; 0 without executions."""
    of_sizes = [ns / (size * count) for size, (count, ns) in executed.items() if count >= _ENOUGH]
    if of_sizes:
        return min(of_sizes)
    rows = sum(size * count for size, (count, _) in executed.items())
    return sum(ns for _, ns in executed.values()) / rows if rows else 0.0
