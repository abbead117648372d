"""Overload: a server with long queues wants no more requests until they are short again.

estimated waits of all versions ─► [WaitControl] ─► [Overload] ─► readiness
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from core.control import Area, Models
from core.control.exchange import ProcessResults
from core.control.metrics.latencies import wait_estimate_s
from core.control.operation import Arguments, question

_LOOK_S = 0.1
_DONE = 0.5  # part of the limit below which the server is ready again


def _longest(answers: ProcessResults, arguments: Arguments) -> float:
    return max(answers.values.values(), default=0.0)


class WaitControl(Area, name="readiness"):
    """How long a new request would wait. Not thread-safe: call from the event loop only."""

    def __init__(self, models: Models):
        self._models = models

    @question("health", _longest, internal=True)
    async def longest_s(self) -> float:
        """Return the longest estimated wait of all models, in seconds; of all workers."""
        ready = (each for each in self._models.versions() if each.state == "READY")
        return max(map(wait_estimate_s, ready), default=0.0)


class Overload:
    """Whether the wait has been too long. Not thread-safe: call from the event loop only.

    limit_s   longest wait at which the server is ready
    wait_s    returns the wait of a new request in seconds; called at most each 0.1 s
    clock_s   monotonic time in seconds
    """

    def __init__(
        self,
        limit_s: float,
        wait_s: Callable[[], Awaitable[float]],
        clock_s: Callable[[], float] = time.monotonic,
    ):
        self._limit_s = limit_s
        self._wait_s = wait_s
        self._clock_s = clock_s
        self._next_look_s = clock_s()
        self._found_s = 0.0
        self._overloaded = False

    async def reason(self) -> str:
        """Return why the server wants no more requests, or ""."""
        if (now_s := self._clock_s()) >= self._next_look_s:
            self._next_look_s = now_s + _LOOK_S
            self._found_s = await self._wait_s()
            bound_s = self._limit_s * _DONE if self._overloaded else self._limit_s
            self._overloaded = self._found_s > bound_s
        if not self._overloaded:
            return ""
        return (
            f"the server is overloaded: a new request would wait {self._found_s:.3g} s; it is ready again "
            f"below {self._limit_s * _DONE:g} s (--overload-wait-secs={self._limit_s:g})"
        )
