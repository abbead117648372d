"""Rows: what one process knows of each model version now, from the statistics that it has anyway.

ModelVersion ─► [Rows.collect] ─► a row for each version, as values that JSON can hold

A row has counters since the load; the page computes rates and means from two rows. A version that has not
changed since the last look keeps its row: a look at a thousand idle models costs little.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from core.control.metrics.latencies import wait_estimate_s
from core.telemetry.metrics.detailed import DetailedStatistics
from core.telemetry.statistics import Statistics
from core_console.lanes import Lanes

if TYPE_CHECKING:
    from core.config import ModelConfig
    from core.lifecycle import ModelVersion
    from core.pipeline import Chain
    from core.pipeline.ensemble import EnsembleChain
    from core.server import InferenceServer

Row = dict[str, Any]

_FULL_TURNS = 10  # looks between two full ones at an idle version, and two questions for memory
_COMPUTE = ("compute_input", "compute_infer", "compute_output")


@dataclass(slots=True)
class _Known:
    """A version at the last look; `row` shows it while nothing has changed."""

    version: ModelVersion
    config: ModelConfig
    counters: Statistics
    chain: Chain | EnsembleChain
    row: Row
    ok: int
    failed: int
    runs: int

    def holds(self, version: ModelVersion) -> bool:
        """Return whether the version is idle, and was so at the last look."""
        counters = self.counters
        return (
            version.state == "READY"
            and version.config is self.config
            and self.chain.in_flight == 0 == self.row["flight"]
            and counters.success.count == self.ok
            and counters.fail.count == self.failed
            and counters.execution_count == self.runs
        )


class Rows:
    """The rows of the model versions of this process. Loop thread only.

    active   the versions that have executed something since the look before, or do now
    """

    def __init__(self, server: InferenceServer, lanes: Lanes):
        self._server = server
        self._lanes = lanes
        # By identity of the version, of the last look. It keeps the version alive: no other has its id.
        self._known: dict[int, _Known] = {}
        self._turn = 0
        self.active: list[ModelVersion] = []

    def collect(self) -> list[Row]:
        """Return a row for each version that the index shows, sorted by name and number."""
        self._turn += 1
        known: dict[int, _Known] = {}
        found, active = [], []
        for number, version in enumerate(self._server.models.versions()):
            identity = id(version)
            before = self._known.get(identity)
            # A tenth of the idle versions is looked at in full each time.
            fresh = (self._turn + number) % _FULL_TURNS == 0 or self._lanes.were_busy(version.key)
            if before is not None and not fresh and before.holds(version):
                known[identity] = before
                found.append(before.row)
                continue
            row = self._row(version, None if before is None else before.row)
            found.append(before.row if before is not None and before.row == row else row)
            if version.state == "READY":
                after = known[identity] = _known(version, found[-1])
                if row["flight"] or before is None or before.runs != after.runs:
                    active.append(version)
        self._known, self.active = known, active
        return found

    def _row(self, version: ModelVersion, before: Row | None) -> Row:
        row: Row = {
            "model": version.key,
            "version": version.version,
            "state": version.state,
            "reason": version.reason,
        }
        if version.state == "LOADING":
            row["reason"] = version.progress.step
        if version.state != "READY":
            return row
        config, chain, counters = version.config, version.chain, version.statistics
        if before is None or "memory" not in before or self._turn % _FULL_TURNS == 0:
            memory = sum(each["byte_size"] for each in version.memory_usage())
        else:
            memory = before["memory"]
        return row | {
            "platform": config.platform or config.backend,
            "ensemble": config.HasField("ensemble_scheduling"),
            "decoupled": config.model_transaction_policy.decoupled,
            "batch": config.max_batch_size,
            "delay_us": config.dynamic_batching.max_queue_delay_microseconds,
            "serves": chain.ready,
            "loaded_s": round(version.load_seconds, 3),
            "memory": memory,
            "pending": chain.pending,
            "flight": chain.in_flight,
            "queues": {str(level): count for level, count in chain.pending_by_priority.items()},
            "wait_s": round(wait_estimate_s(version), 4),
            "lanes": self._lanes.of(version),
            **counted(counters),
        }


def _known(version: ModelVersion, row: Row) -> _Known:
    return _Known(
        version,
        version.config,
        version.statistics,
        version.chain,
        row,
        row["ok"],
        row["failed"],
        row["runs"],
    )


def counted(counters: Statistics) -> Row:
    """Return the counters of a version: counts, and sums of durations in nanoseconds."""
    sizes = counters.batch_sizes
    found: Row = {
        "last_ms": counters.last_inference_ms,
        "ok": counters.success.count,
        "failed": counters.fail.count,
        "failures": {reason: count for reason, count in counters.failures.items() if count},
        "total_ns": counters.success.ns,
        "queue_ns": counters.queue.ns,
        "input_ns": counters.compute_input.ns,
        "infer_ns": counters.compute_infer.ns,
        "output_ns": counters.compute_output.ns,
        "hits": counters.cache_hit.count,
        "rows": counters.inference_count,
        "runs": counters.execution_count,
        "busy_ns": sum(getattr(size, name).ns for size in sizes.values() for name in _COMPUTE),
        "batches": {str(rows): size.compute_infer.count for rows, size in sorted(sizes.items())},
        "batch_ns": {str(rows): size.compute_infer.ns for rows, size in sorted(sizes.items())},
    }
    if isinstance(counters, DetailedStatistics):
        phase = counters.phases()["request"]
        if phase.spread is not None:
            low, high, cells = phase.spread.recent()
            if cells:
                numbered = {str(cell): count for cell, count in cells.items()}
                found["spread"] = [low, high, numbered]
        if phase.histogram is not None:
            found["bounds_us"] = list(phase.histogram.bounds)
            found["buckets"] = phase.histogram.counts()
    return found
