"""Counters of one model version, as Triton's statistics extension defines them.

The loop thread updates them when a request ends and when an execution ends. They are plain integers:
readers on the loop thread (metrics, statistics endpoint) need no lock.
"""

from __future__ import annotations

from typing import Any

from core.native.clock import wall_ms
from core.native.distribution import Histogram

# Labels of nv_inference_request_failure; DEADLINE is not one of Triton's.
REASONS = ("REJECTED", "CANCELED", "BACKEND", "OTHER", "DEADLINE")
_COMPUTE = ("compute_input", "compute_infer", "compute_output")


class Duration:
    """Count and total duration of an event, in nanoseconds."""

    def __init__(self) -> None:
        self.count = 0
        self.ns = 0

    def add(self, ns: int) -> None:
        self.count += 1
        self.ns += ns

    def as_dict(self) -> dict[str, int]:
        return {"count": self.count, "ns": self.ns}


class BatchSize:
    """Counters of the executions with one batch size."""

    def __init__(self) -> None:
        self.compute_input = Duration()
        self.compute_infer = Duration()
        self.compute_output = Duration()


class Statistics:
    """Counters of one model version since it was loaded.

    inference_count   rows of requests executed with success (a request of 3 rows counts 3)
    execution_count   executions, successful or failed
    last_inference_ms time of the last execution in milliseconds since the epoch; 0 for never
    success, fail     requests, and the time from admission to the last response
    queue             successful requests, and the time from admission to the execution or the cache lookup
    compute_*         successful executed requests, and the times to gather inputs, infer and split outputs
    failures          failed requests by reason
    first_response    times to the first response; None without histograms
    """

    def __init__(self) -> None:
        self.inference_count = 0
        self.execution_count = 0
        self.last_inference_ms = 0
        self.success = Duration()
        self.fail = Duration()
        self.queue = Duration()
        self.compute_input = Duration()
        self.compute_infer = Duration()
        self.compute_output = Duration()
        self.cache_hit = Duration()
        self.cache_miss = Duration()
        self.failures = dict.fromkeys(REASONS, 0)
        self.batch_sizes: dict[int, BatchSize] = {}
        self.first_response: Histogram | None = None

    def executed(self, rows: int, input_ns: int, infer_ns: int, output_ns: int) -> None:
        """Count an execution of `rows` rows, successful or failed, and its times by batch size."""
        self.execution_count += 1
        self.last_inference_ms = wall_ms()
        if (size := self.batch_sizes.get(rows)) is None:
            size = self.batch_sizes[rows] = BatchSize()
        size.compute_input.add(input_ns)
        size.compute_infer.add(infer_ns)
        size.compute_output.add(output_ns)

    def succeeded(
        self, rows: int, total_ns: int, queue_ns: int, input_ns: int, infer_ns: int, output_ns: int
    ) -> None:
        """Count a successful request of `rows` rows that has got its last response, and its times."""
        self.inference_count += rows
        self.success.add(total_ns)
        self.queue.add(queue_ns)
        self.compute_input.add(input_ns)
        self.compute_infer.add(infer_ns)
        self.compute_output.add(output_ns)

    def failed(self, reason: str, total_ns: int) -> None:
        """Count an admitted request that has failed; `reason` is one of REASONS."""
        self.failures[reason] += 1
        self.fail.add(total_ns)

    def hit(self, lookup_ns: int, queue_ns: int, total_ns: int) -> None:
        """Count a request answered by the cache; the lookup began `queue_ns` after its arrival."""
        self.success.add(total_ns)
        self.queue.add(queue_ns)
        self.cache_hit.add(lookup_ns)

    def missed(self, cache_ns: int) -> None:
        """Count a cache miss of a request; lookup and insertion took `cache_ns`."""
        self.cache_miss.add(cache_ns)

    def as_dict(self) -> dict[str, Any]:
        """Return the members of a `model_stats` entry, without name, version and memory_usage."""
        return {
            "last_inference": self.last_inference_ms,
            "inference_count": self.inference_count,
            "execution_count": self.execution_count,
            "inference_stats": {
                name: getattr(self, name).as_dict()
                for name in ("success", "fail", "queue", *_COMPUTE, "cache_hit", "cache_miss")
            },
            "response_stats": {},
            "batch_stats": [
                {"batch_size": rows, **{name: getattr(size, name).as_dict() for name in _COMPUTE}}
                for rows, size in sorted(self.batch_sizes.items())
            ],
        }
