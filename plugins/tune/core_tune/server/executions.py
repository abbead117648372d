"""Executions: counts and times in the statistics of a model, and what was added between two looks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from core.errors import unavailable
from core_tune.observation import Size


@dataclass(frozen=True)
class Executions:
    """All of a model's versions since they were loaded.

    sizes         count and nanoseconds of executions, by rows
    requests      that were answered
    nanoseconds   of these requests, within the server
    """

    sizes: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    requests: int = 0
    nanoseconds: int = 0

    def sizes_since(self, before: Executions) -> list[Size]:
        """Return the executions between the look `before` and this one."""
        found = []
        for rows in sorted(self.sizes):
            count, spent = self.sizes[rows]
            earlier = before.sizes.get(rows, (0, 0))
            if count > earlier[0] and spent > earlier[1]:
                executions = count - earlier[0]
                found.append(Size(rows, executions, (spent - earlier[1]) / executions / 1e9))
        return found

    def seconds_since(self, before: Executions) -> float:
        """Return the average time of a request within the server; 0 if there was none."""
        requests = self.requests - before.requests
        return (self.nanoseconds - before.nanoseconds) / requests / 1e9 if requests else 0.0


def executions_of(statistics: Sequence[Mapping[str, Any]]) -> Executions:
    """Return the sums over the versions in `model_stats`. Raises CoreError if it is empty."""
    if not statistics:
        raise unavailable("the server has no statistics of the model; core tune needs them")
    sizes: dict[int, tuple[int, int]] = {}
    requests = nanoseconds = 0
    for version in statistics:
        success = version.get("inference_stats", {}).get("success", {})
        requests += int(success.get("count", 0))
        nanoseconds += int(success.get("ns", 0))
        for each in version.get("batch_stats", ()):
            count, spent = sizes.get(int(each["batch_size"]), (0, 0))
            sizes[int(each["batch_size"])] = (
                count + int(each["compute_infer"].get("count", 0)),
                spent + _spent_ns(each),
            )
    return Executions(sizes, requests, nanoseconds)


def _spent_ns(size: Mapping[str, Any]) -> int:
    return sum(
        int(size.get(part, {}).get("ns", 0))
        for part in ("compute_input", "compute_infer", "compute_output")
    )
