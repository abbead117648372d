"""WaitPolicy: Serve's autoscaler keeps the wait of a request below a target, by the estimate of the servers.

replica: LoadSignals ─► record_autoscaling_stats ─► Serve's controller: [WaitPolicy] ─► number of replicas

This module must not import other modules of core_ray: Serve sends it to its controller by value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

WAIT_MS = "core_wait_ms"
BUSY = "core_busy"


class WaitPolicy:
    """A policy for Serve's AutoscalingConfig, which applies its bounds, delays and factors to the result.

    target_wait_ms   replicas are added while a new request would wait longer, in milliseconds
    target_busy      share of the instances' time, 0 to 1: replicas are removed while the others stay below
    A new number is at most twice the number of replicas that run: those that start may be enough.
    """

    def __init__(self, target_wait_ms: float = 100.0, target_busy: float = 0.7):
        if not target_wait_ms > 0:
            raise ValueError(f"target_wait_ms={target_wait_ms!r}: give milliseconds above 0")
        if not 0 < target_busy <= 1:
            raise ValueError(f"target_busy={target_busy!r}: give a share above 0, at most 1")
        self.target_wait_ms, self.target_busy = target_wait_ms, target_busy

    def __call__(self, context: Any) -> tuple[int, dict[str, Any]]:
        """Return how many replicas there should be, and the state of the policy, which is none.

        context   Serve's AutoscalingContext; its metrics are means over look_back_period_s
        """
        present, metrics = context.target_num_replicas, context.aggregated_metrics or {}
        waits_ms = _of(metrics, WAIT_MS, context.running_replicas)
        if not waits_ms:
            return present, {}
        for_wait = math.ceil(sum(waits_ms) / self.target_wait_ms)
        if sum(waits_ms) > self.target_wait_ms * len(waits_ms):
            return max(present, min(for_wait, 2 * len(waits_ms))), {}
        if len(waits_ms) < present:
            return present, {}  # a replica starts: its share is unknown
        shares = _of(metrics, BUSY, context.running_replicas)
        for_work = math.ceil(sum(shares) / self.target_busy)
        if not for_work and context.total_num_requests:
            for_work = 1  # requests of a proxy or handle that have not reached a server
        return min(present, max(for_work, for_wait)), {}


def _of(
    metrics: Mapping[str, Mapping[Any, float]], name: str, running: Iterable[Any]
) -> list[float]:
    """Return the values that the running replicas have reported."""
    found = metrics.get(name, {})
    return [found[each] for each in running if each in found]
