"""What a batcher without any cost of its own would have made of the arrivals that a server saw.

Executions ─► [ideal] ─► mean batch.  A few lines that can be checked by reading them: the yardstick.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Execution:
    """One batch, as its instance saw it; ns on the monotonic clock.

    arrivals   when each of its requests was admitted
    """

    instance: int
    start_ns: int
    end_ns: int
    arrivals: Sequence[int]


def mean_batch(executions: Sequence[Execution]) -> float:
    """Requests of one execution, 0 without any."""
    return sum(len(each.arrivals) for each in executions) / len(executions) if executions else 0.0


def ideal_batches(
    executions: Sequence[Execution], most: int, delay_ns: int, instances: int
) -> list[int]:
    """The sizes of the batches for the same arrivals, when nothing but `execute` takes time.

    A batch starts when an instance is idle and it is full or its oldest request has waited for
    `delay_ns`. Instances are busy for as long as they were in the median.
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
    """By how much each batch started later than the delay of its oldest request allows.

    Only of batches whose instance waited for them: when it was busy, the delay was not the reason.
    """
    last_end: dict[int, int] = {}
    found = []
    for each in sorted(executions, key=lambda each: each.start_ns):
        due = min(each.arrivals) + delay_ns
        if last_end.get(each.instance, 0) <= due:
            found.append(max(0, each.start_ns - due))
        last_end[each.instance] = each.end_ns
    return found
