"""The ideal batcher: the batches of a batcher without overhead, for the arrivals that a server recorded.

Executions ─► [ideal] ─► mean batch.  The code is short, so that it can be verified by reading.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Execution:
    """One executed batch; times in ns on the monotonic clock.

    arrivals   time of admission of each request
    """

    instance: int
    start_ns: int
    end_ns: int
    arrivals: Sequence[int]


def mean_batch(executions: Sequence[Execution]) -> float:
    """Return the mean number of requests in an execution; 0 without executions."""
    return sum(len(each.arrivals) for each in executions) / len(executions) if executions else 0.0


def ideal_batches(
    executions: Sequence[Execution], most: int, delay_ns: int, instances: int
) -> list[int]:
    """Return the batch sizes for the same arrivals if only `execute` takes time.

    A batch starts when an instance is idle and the batch is full or its oldest request has waited for
    `delay_ns`. Each execution takes the median of the recorded durations.
    """
    arrivals = sorted(each for execution in executions for each in execution.arrivals)
    times = sorted(each.end_ns - each.start_ns for each in executions)
    busy_ns = times[len(times) // 2] if times else 0
    idle_at = [0] * instances
    sizes = []
    first = 0
    while first < len(arrivals):
        idle_at.sort()
        start = max(idle_at[0], arrivals[first] + delay_ns)
        if first + most <= len(arrivals):
            start = max(idle_at[0], min(start, arrivals[first + most - 1]))
        after = min(first + most, bisect.bisect_right(arrivals, start))
        sizes.append(after - first)
        idle_at[0] = start + busy_ns
        first = after
    return sizes


def overshoots_ns(executions: Sequence[Execution], delay_ns: int) -> list[int]:
    """Return how much later than the delay of its oldest request each batch started.

    Counts only batches for which an idle instance waited: with busy instances the delay is not the cause.
    """
    last_end: dict[int, int] = {}
    found = []
    for each in sorted(executions, key=lambda each: each.start_ns):
        due = min(each.arrivals) + delay_ns
        if last_end.get(each.instance, 0) <= due:
            found.append(max(0, each.start_ns - due))
        last_end[each.instance] = each.end_ns
    return found
