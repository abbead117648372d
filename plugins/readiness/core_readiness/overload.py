"""Overload: a server with long queues wants no more requests until they are short again.

estimated waits of all versions ─► [Limit] ─► [WaitControl], of all workers ─► [Overload] ─► readiness
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


class Limit:
    """Whether the waits of one process have been too long. Not thread-safe: event loop only.

    limit_s   longest wait at which the process is not overloaded
    """

    def __init__(self, limit_s: float):
        self._limit_s = limit_s
        self._is_over = False

    def excess_s(self, wait_s: float) -> float:
        """Return the wait of now if the process is overloaded; else 0."""
        self._is_over = wait_s > (self._limit_s * _DONE if self._is_over else self._limit_s)
        return wait_s if self._is_over else 0.0


def _longest(answers: ProcessResults, arguments: Arguments) -> float:
    return max(answers.values.values(), default=0.0)


class WaitControl(Area, name="readiness"):
    """How long a new request would wait. Not thread-safe: call from the event loop only.

    models   those of this process
    limit    of its waits; every question moves it in all workers, so that they agree
    """

    def __init__(self, models: Models, limit: Limit):
        self._models = models
        self._limit = limit

    @question("health", _longest, internal=True)
    async def excess_s(self) -> float:
        """Return the longest estimated wait of the overloaded workers, in seconds; 0 if there are none."""
        ready = (each for each in self._models.versions() if each.state == "READY")
        return self._limit.excess_s(max(map(wait_estimate_s, ready), default=0.0))


class Overload:
    """Why an overloaded server is not ready. Not thread-safe: call from the event loop only.

    limit_s    longest wait at which the server is ready
    excess_s   returns the wait of a new request in seconds if the server is overloaded, else 0; called at
               most each 0.1 s
    clock_s    monotonic time in seconds
    """

    def __init__(
        self,
        limit_s: float,
        excess_s: Callable[[], Awaitable[float]],
        clock_s: Callable[[], float] = time.monotonic,
    ):
        self._limit_s = limit_s
        self._excess_s = excess_s
        self._clock_s = clock_s
        self._next_look_s = clock_s()
        self._found_s = 0.0

    async def reason(self) -> str:
        """Return why the server wants no more requests, or ""."""
        if (now_s := self._clock_s()) >= self._next_look_s:
            self._next_look_s = now_s + _LOOK_S
            self._found_s = await self._excess_s()
        if not self._found_s:
            return ""
        return (
            f"the server is overloaded: a new request would wait {self._found_s:.3g} s; it is ready again "
            f"below {self._limit_s * _DONE:g} s (--overload-wait-secs={self._limit_s:g})"
        )
