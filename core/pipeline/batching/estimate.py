"""WaitEstimate: how long a request that comes now would wait for an instance.

For requests with a deadline that would have to wait: no other one comes here.
"""

from __future__ import annotations

from core.telemetry.statistics import Statistics

LEAST_REQUESTS = 20  # executed ones that an estimate is made from
RECENT_REQUESTS = 64  # so many newer ones make the time of the recent past


class WaitEstimate:
    """From what executions of one model version have taken. Loop thread only."""

    def __init__(self, statistics: Statistics):
        self._statistics = statistics
        self._older = self._newer = (
            0,
            0,
        )  # busy nanoseconds and requests, at two times in the past

    def wait_ns(self, ahead: int, instances: int) -> int:
        """Return a low estimate in nanoseconds; 0 if too little is known.

        ahead       requests that run before
        instances   that serve
        The time of a request is the smaller one of the mean of all and the mean of the recent past: the first
        executions of a model are often slow.
        """
        busy_ns, requests = now = self._executed()
        if requests < LEAST_REQUESTS:
            return 0
        older_ns, older = self._older
        if requests - self._newer[1] >= RECENT_REQUESTS:
            self._older, self._newer = self._newer, now
        each_ns = busy_ns / requests
        if requests - older >= LEAST_REQUESTS:
            each_ns = min(each_ns, (busy_ns - older_ns) / (requests - older))
        return int(ahead * each_ns / max(1, instances))

    def _executed(self) -> tuple[int, int]:
        """How long instances were busy, with how many requests."""
        found = self._statistics
        requests = found.success.count - found.cache_hit.count + found.failures["BACKEND"]
        busy_ns = sum(
            size.compute_input.ns + size.compute_infer.ns + size.compute_output.ns
            for size in found.batch_sizes.values()
        )
        return busy_ns, requests
