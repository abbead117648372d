"""Delays: the pauses before a worker that has ended is started again."""

from __future__ import annotations

import time
from collections.abc import Callable

_FIRST_S = 0.1  # twice as long each time
_LONGEST_S = 30.0
_WELL_S = 60.0  # after a worker has served longer, its next delay is the first one again


class Delays:
    """The delays of each worker, independent of those of other workers.

    The first delay of a worker is 0.1 s; each further one is twice as long, up to 30 s. After a worker has
    served for more than 60 s, its next delay is 0.1 s again.
    clock   returns monotonic seconds
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._up_s: dict[int, float] = {}  # worker → time at which it began to serve
        self._next_s: dict[int, float] = {}

    def up(self, worker: int) -> None:
        """Record that a worker serves now."""
        self._up_s[worker] = self._clock()

    def next_s(self, worker: int) -> float:
        """Record that a worker has ended or could not start. Return the seconds until its next start."""
        up_s = self._up_s.pop(worker, None)
        if up_s is not None and self._clock() - up_s > _WELL_S:
            self._next_s.pop(worker, None)
        delay_s = self._next_s.get(worker, _FIRST_S)
        self._next_s[worker] = min(2 * delay_s, _LONGEST_S)
        return delay_s
