"""Split: where a server spends the time of a request, from its statistics before and after a round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

PARTS = ("queue", "compute_input", "compute_infer", "compute_output")


@dataclass(frozen=True)
class Split:
    """Differences of the statistics; times in nanoseconds, summed over requests.

    executions   batches that ran
    inferences   rows
    """

    requests: int
    executions: int
    inferences: int
    ns: Mapping[str, int]

    def microseconds(self, part: str) -> float:
        """Return the average time of a part for one request."""
        return self.ns[part] / self.requests / 1000 if self.requests else 0.0

    @property
    def rows_per_execution(self) -> float:
        return self.inferences / self.executions if self.executions else 0.0


Totals = tuple[int, int, int, dict[str, int]]


def totals(statistics: Sequence[Mapping[str, Any]]) -> Totals | None:
    """Return the sums over versions; None if a server has no statistics."""
    if not statistics:
        return None
    requests = executions = inferences = 0
    ns = dict.fromkeys(PARTS, 0)
    for each in statistics:
        executions += int(each.get("execution_count", 0))
        inferences += int(each.get("inference_count", 0))
        durations = each.get("inference_stats", {})
        requests += int(durations.get("success", {}).get("count", 0))
        for part in PARTS:
            ns[part] += int(durations.get(part, {}).get("ns", 0))
    return requests, executions, inferences, ns


def split(before: Totals | None, after: Totals | None) -> Split | None:
    """Return what happened between two readings; None if one is missing, or the server has started anew."""
    if before is None or after is None or after[0] <= before[0]:
        return None
    ns = {part: after[3][part] - before[3][part] for part in PARTS}
    return Split(after[0] - before[0], after[1] - before[1], after[2] - before[2], ns)
