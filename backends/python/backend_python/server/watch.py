"""End a child whose execution does not return. Not thread-safe: call from the event loop only.

By default an execution has no time limit. A process that was stopped by a signal has its own limit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from backend_python.system import process_state

_LOOKS = 8  # within the limit
_LONGEST_S = 5.0  # between two looks


class Watch:
    """A periodic check of one child. It adds no work to a batch.

    limit_s    time limit of an execution in seconds; 0 for no limit
    stopped_s  seconds that a process may be stopped while it should execute
    pid        of the process
    executing  returns the number of the batch that is executed, None if there is none
    stuck      called with the reason when the child is stuck; the checks then end
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        limit_s: float,
        stopped_s: float,
        pid: int,
        executing: Callable[[], int | None],
        stuck: Callable[[str], None],
    ):
        self._loop = loop
        self._limit_s = limit_s
        self._stopped_s = stopped_s
        self._pid = pid
        self._executing = executing
        self._stuck = stuck
        self._number: int | None = None  # of the batch that was executed at the last look
        self._since = 0.0
        shortest = min(limit_s or stopped_s, stopped_s)
        self._period_s = min(_LONGEST_S, shortest / _LOOKS)
        self._timer = loop.call_later(self._period_s, self._look)

    def close(self) -> None:
        """Cancel the timer, so that the child is not checked any more."""
        self._timer.cancel()

    def _look(self) -> None:
        number = self._executing()
        now = self._loop.time()
        if number is None or number != self._number:
            self._number, self._since = number, now
        elif (reason := self._reason(now - self._since)) is not None:
            self._stuck(reason)
            return
        self._timer = self._loop.call_later(self._period_s, self._look)

    def _reason(self, seconds: float) -> str | None:
        if self._limit_s and seconds >= self._limit_s:
            return f"has not come back from execute within {self._limit_s:g} seconds"
        if seconds >= self._stopped_s and process_state(self._pid) == "T":
            return f"has been stopped by a signal for {self._stopped_s:g} seconds"
        return None
