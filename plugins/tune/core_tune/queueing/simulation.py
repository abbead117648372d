"""simulate: requests that arrive, wait, share executions and end, in virtual time.

The rules are those of core's batcher: an idle instance takes as many of the requests that wait as the largest
preferred size that they fill. If they fill none, it takes all of them; with a delay it first waits for a
preferred size, until the oldest request has waited so long.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Sequence
from heapq import heapreplace

import numpy as np

Array = np.ndarray


def simulate(
    due: Array,
    front_s: float,
    table: Array,
    sizes: Sequence[int],
    delay_s: float,
    factors: Sequence[float] = (1.0,),
) -> Array:
    """Return the latency of each request in seconds.

    due       when each request arrives, ascending
    front_s   time of each request before it is queued, one after the other
    table     seconds of an execution by (busy instances - 1, requests - 1)
    factors   by which the times of the executions differ from `table`, in turn
    sizes     preferred numbers of requests of a batch, ascending; as many as `table` has share an execution
              if the oldest has waited for `delay_s`
    """
    number = np.arange(1, len(due) + 1)
    queued = front_s * number + np.maximum.accumulate(due - front_s * (number - 1))
    times: list[float] = queued.tolist()
    seconds: list[list[float]] = table.tolist()
    free = [0.0] * len(seconds)
    same = seconds[0] == seconds[-1]  # then it does not matter how many are busy
    ends = np.empty(len(due))
    first, count, most = 0, len(times), len(seconds[0])
    least, full = sizes[0], sizes[-1]
    factor = itertools.cycle(factors)
    while first < count:
        start, oldest = max(free[0], times[first]), times[first]
        if delay_s and start >= oldest + delay_s:
            waiting = bisect_right(times, start, first, min(first + most, count)) - first
        else:
            last = min(first + full, count)
            waiting = bisect_right(times, start, first, last) - first
            if waiting < least and delay_s:
                late = oldest + delay_s
                start = max(
                    start, min(times[first + least - 1], late) if last - first >= least else late
                )
                waiting = bisect_right(times, start, first, last) - first
            if least < waiting < full:
                waiting = sizes[bisect_right(sizes, waiting) - 1]
        busy = 0 if same else sum([each > start for each in free])
        end = start + seconds[busy][waiting - 1] * next(factor)
        heapreplace(free, end)
        ends[first : first + waiting] = end
        first += waiting
    found: Array = ends - due
    return found
