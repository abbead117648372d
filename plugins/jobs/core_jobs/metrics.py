"""Metrics of jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.telemetry.families import Family, Sample
from core.telemetry.metrics.catalog import Entry
from core.telemetry.metrics.source import MetricSource

if TYPE_CHECKING:
    from core_jobs.jobs import Jobs

_WITH = "with `--jobs-folder`"
# Every process reads these from the same store.
_JOBS = Entry("core_jobs", "gauge", "Jobs by state", ("state",), _WITH, together="first")
_WAITING = Entry(
    "core_jobs_oldest_waiting_seconds",
    "gauge",
    "Age of the oldest job that waits; 0 if none does",
    (),
    _WITH,
    together="first",
)
_BYTES = Entry(
    "core_jobs_bytes", "gauge", "Bytes of requests and results on disk", (), _WITH, together="first"
)
_REQUESTS = Entry(
    "core_job_requests",
    "counter",
    "Requests of jobs by result: succeeded, failed; and how often one was sent again: retried",
    ("result",),
    _WITH,
)


class JobsMetrics(MetricSource):
    """The metrics of one server. Event loop only.

    jobs   set when the server starts; None without --jobs-folder
    """

    catalog = {"Jobs (plugin `core-jobs`)": [_JOBS, _WAITING, _BYTES, _REQUESTS]}

    def __init__(self) -> None:
        self.jobs: Jobs | None = None

    def families(self) -> list[Family]:
        """Return the current values; of the store those of at most a second ago."""
        if self.jobs is None:
            return []
        numbers, counts = self.jobs.numbers, self.jobs.runner.counts
        return [
            _JOBS.family(Sample({"state": name}, count) for name, count in numbers.jobs.items()),
            _WAITING.family([Sample({}, numbers.waiting_s)]),
            _BYTES.family([Sample({}, numbers.bytes)]),
            _REQUESTS.family(
                Sample({"result": name}, counts[name])
                for name in ("succeeded", "failed", "retried")
            ),
        ]
