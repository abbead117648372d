"""WaitEstimate: estimates how long a new request would wait for an instance.

Only requests with a deadline that find no idle instance use it.
"""

from __future__ import annotations

from core.telemetry.statistics import Statistics

LEAST_REQUESTS = 20  # executed requests that an estimate needs
RECENT_REQUESTS = 64  # executed requests that make up the recent past


class WaitEstimate:
    """Estimate from the execution times of one model version.

    Not thread-safe: call from the event loop only.
    """

    def __init__(self, statistics: Statistics):
        self._statistics = statistics
        # Busy nanoseconds and requests, at two times in the past.
        self._older = self._newer = (0, 0)

    def wait_ns(self, ahead: int, instances: int) -> int:
        """Return a low estimate of the wait in nanoseconds; 0 if too few requests have executed.

        ahead       number of requests that run before the new one
        instances   number of instances that serve
        The time of one request is the overall mean or the recent mean, whichever is smaller, because the
        first executions of a model are often slow.
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
        """Return, since the load, the nanoseconds of all executions and the number of their requests."""
        found = self._statistics
        requests = found.success.count - found.cache_hit.count + found.failures["BACKEND"]
        busy_ns = sum(
            size.compute_input.ns + size.compute_infer.ns + size.compute_output.ns
            for size in found.batch_sizes.values()
        )
        return busy_ns, requests
