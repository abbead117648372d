"""Utilization: how much of its capacity a server uses, for load balancers.

counters of the model versions ─► [Utilization] ─► application_utilization of the load reports

gRPC's weighted_round_robin divides the requests per second of a server by this value: the result is what the
server can do. So the value must grow in proportion to the requests while the server keeps up, and beyond 1
when it does not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from core.control.metrics.latencies import wait_estimate_s
from frontends.shared.recent_growth import RecentGrowth

if TYPE_CHECKING:
    from core.lifecycle import ModelVersion
    from core.server import InferenceServer

_SPAN_S = 2.0


class Utilization:
    """Measures one server. Not thread-safe: call from the event loop only.

    full_wait_s   estimated wait of a new request beyond which the server does not keep up
    clock_s       monotonic time in seconds
    """

    def __init__(
        self,
        server: InferenceServer,
        full_wait_s: float,
        clock_s: Callable[[], float] = time.monotonic,
    ):
        self._server = server
        self._full_wait_s = full_wait_s
        self._clock_s = clock_s
        self._used: RecentGrowth[tuple[str, int]] = RecentGrowth(_SPAN_S)

    def __call__(self, named: Mapping[str, float]) -> dict[str, float]:
        """Return the field application_utilization: the largest of the shares of all models.

        named   named metrics of the report; the use of the memory for contexts is a share too
        """
        ready = {
            (version.key, version.version): version
            for version in self._server.models.versions()
            if version.state == "READY"
        }
        past_s, grown = self._used.add(
            self._clock_s(), {key: used_s(version) for key, version in ready.items()}
        )
        shares = [named.get("kv_cache_utilization", 0.0)]
        for key, version in ready.items():
            if past_s:
                shares.append(grown[key] / past_s / max(1, version.chain.instances))
            # A shorter wait says little: requests wait for the execution before theirs also at little use,
            # and longer on a slow server than on a fast one.
            if (wait := wait_estimate_s(version) / self._full_wait_s) > 1:
                shares.append(wait)
        return {"application_utilization": max(shares)}


def used_s(version: ModelVersion) -> float:
    """Return the seconds of its instances that a version has used since it was loaded.

    An execution of fewer rows than a batch may have counts in part: 2 of at most 8 rows are a quarter. More
    requests would join it. Without this, a server that batches would seem full with few requests.
    """
    config = version.config
    most = config.max_batch_size if config.HasField("dynamic_batching") else 0
    total_ns = sum(
        min(1.0, rows / max(1, most))
        * (size.compute_input.ns + size.compute_infer.ns + size.compute_output.ns)
        for rows, size in version.statistics.batch_sizes.items()
    )
    return total_ns / 1e9
