"""Metrics of a capture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.telemetry.families import Family, Sample
from core.telemetry.metrics.catalog import Entry
from core.telemetry.metrics.source import MetricSource

if TYPE_CHECKING:
    from core_capture.recording.recorder import Recorder

_RUNNING = Entry("core_capture_running", "gauge", "Whether requests are captured: 1 or 0")
_RECORDS = Entry("core_capture_records", "counter", "Requests that were recorded")
_BYTES = Entry("core_capture_bytes", "counter", "Bytes of records that were written")
_DROPPED = Entry(
    "core_capture_dropped",
    "counter",
    "Requests that were not recorded: the queue to the disk was full (queue), or the disk (disk)",
    ("reason",),
)


class CaptureMetrics(MetricSource):
    """The metrics of one server. Event loop only.

    worker     number of this process among the workers, from 0 on
    recorder   set when the server starts
    """

    catalog = {
        "Capture of requests (plugin `core-capture`)": [_RUNNING, _RECORDS, _BYTES, _DROPPED]
    }

    def __init__(self, worker: int):
        self.worker = worker
        self.recorder: Recorder | None = None

    def families(self) -> list[Family]:
        """Return the current values; none before the first capture."""
        recorder = self.recorder
        if recorder is None:
            return []
        counts = recorder.counts()
        return [
            _RUNNING.family([Sample({}, int(recorder.running))]),
            _RECORDS.family([Sample({}, counts["written"])]),
            _BYTES.family([Sample({}, counts["bytes"])]),
            _DROPPED.family(
                [
                    Sample({"reason": "queue"}, counts["full"]),
                    Sample({"reason": "disk"}, counts["unwritten"]),
                ]
            ),
        ]
