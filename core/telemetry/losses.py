"""Losses: counts lost records and reports them at intervals, not one by one.

A full disk may stay full for hours. A report for each lost record would flood stderr.
"""

from __future__ import annotations

import time
from collections.abc import Callable

SAYS_EACH_S = 60.0


class Losses:
    """Counter of lost records. Not thread-safe.

    say     writes "<reason>; <count> <what> lost"; `add` calls it at most once in SAYS_EACH_S seconds
    what    subject and verb of the report, such as "lines are"
    total   records lost since the last call of `end`
    """

    def __init__(
        self, say: Callable[[str], None], what: str, clock_s: Callable[[], float] = time.monotonic
    ):
        self.total = 0
        self._say = say
        self._what = what
        self._clock_s = clock_s
        self._unsaid = 0
        self._is_said = True
        self._reason = ""
        self._said_s = float("-inf")

    def add(self, reason: str, count: int) -> None:
        """Count lost records, 0 if they may still be written; report if the last report is old enough."""
        self.total += count
        self._unsaid += count
        self._reason = reason
        self._is_said = False
        if self._clock_s() - self._said_s >= SAYS_EACH_S:
            self._said_s = self._clock_s()
            self.flush()

    def flush(self) -> None:
        """Report the reason and the losses since the last report; do nothing if `add` was not called."""
        if not self._is_said:
            lost = f"; {self._unsaid} {self._what} lost" if self._unsaid else ""
            self._say(self._reason + lost)
            self._unsaid = 0
            self._is_said = True

    def end(self) -> int:
        """Return the number of lost records and reset it, without a report: writing works again."""
        total, self.total, self._unsaid = self.total, 0, 0
        self._is_said = True
        return total
