"""Delays: how long a worker that has ended waits before it is started again."""

from __future__ import annotations

import time
from collections.abc import Callable

_FIRST_S = 0.1  # twice as long each time
_LONGEST_S = 30.0
_WELL_S = 60.0  # a worker that served so long has not failed again but for the first time


class Delays:
    """Each worker has its own.

    clock   seconds that only grow
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._up_s: dict[int, float] = {}  # worker → since when it serves, if it does
        self._next_s: dict[int, float] = {}

    def up(self, worker: int) -> None:
        """From now on it serves."""
        self._up_s[worker] = self._clock()

    def next_s(self, worker: int) -> float:
        """It has ended, or could not be started: the seconds to wait."""
        up_s = self._up_s.pop(worker, None)
        if up_s is not None and self._clock() - up_s > _WELL_S:
            self._next_s.pop(worker, None)
        delay_s = self._next_s.get(worker, _FIRST_S)
        self._next_s[worker] = min(2 * delay_s, _LONGEST_S)
        return delay_s
