"""Metrics of a capture, and of the tensors in recorded requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.telemetry.families import Family, Sample
from core.telemetry.metrics.catalog import Entry
from core.telemetry.metrics.source import MetricSource
from core_capture.recording.drift_meter import QUANTILES

if TYPE_CHECKING:
    from core_capture.recording.recorder import Recorder

_RUNNING = Entry(
    "core_capture_running",
    "gauge",
    "Whether requests are captured: 1 or 0",
    together="largest",
)
_RECORDS = Entry("core_capture_records", "counter", "Requests that were recorded")
_BYTES = Entry("core_capture_bytes", "counter", "Bytes of records that were written")
_DROPPED = Entry(
    "core_capture_dropped",
    "counter",
    "Requests that were not recorded: the queue to the disk was full (queue), or the disk (disk)",
    ("reason",),
)

_TENSOR = ("model", "version", "side", "tensor", "worker")
_WITH = "with `--capture-drift=true`"
_ELEMENTS = Entry(
    "core_tensor_elements",
    "gauge",
    "Elements of a tensor that the values below are made of",
    _TENSOR,
    _WITH,
)
_NAN = Entry(
    "core_tensor_nan_share",
    "gauge",
    "Share of the elements of a tensor that are NaN",
    _TENSOR,
    _WITH,
)
_MEAN = Entry(
    "core_tensor_mean",
    "gauge",
    "Mean of a tensor; for strings, of their lengths",
    _TENSOR,
    _WITH,
)
_QUANTILE = Entry(
    "core_tensor_quantile",
    "gauge",
    "Quantile of a tensor; for strings, of their lengths",
    (*_TENSOR, "quantile"),
    _WITH,
)
_CLASS = Entry(
    "core_tensor_class_share",
    "gauge",
    "Share of a value of a tensor, or of a predicted class",
    (*_TENSOR, "class"),
    _WITH,
)


class CaptureMetrics(MetricSource):
    """The metrics of one server. Event loop only.

    worker     number of this process among the workers, from 0 on
    recorder   set when the server starts
    """

    catalog = {
        "Capture of requests (plugin `core-capture`)": [
            *(_RUNNING, _RECORDS, _BYTES, _DROPPED),
            *(_ELEMENTS, _NAN, _MEAN, _QUANTILE, _CLASS),
        ]
    }

    def __init__(self, worker: int):
        self.worker = worker
        self.recorder: Recorder | None = None

    def families(self) -> list[Family]:
        """Return the current values; none before the server has started."""
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
            *self._of_tensors(recorder),
        ]

    def _of_tensors(self, recorder: Recorder) -> list[Family]:
        if recorder.drift is None:
            return []
        worker = {"worker": str(self.worker)}
        facts = [(each.key._asdict() | worker, each) for each in recorder.drift.facts()]
        return [
            _ELEMENTS.family(Sample(labels, each.elements) for labels, each in facts),
            _NAN.family(Sample(labels, each.nan_share) for labels, each in facts),
            _MEAN.family(Sample(labels, each.mean) for labels, each in facts),
            _QUANTILE.family(
                Sample(labels | {"quantile": str(share)}, value)
                for labels, each in facts
                for share, value in zip(QUANTILES, each.quantiles, strict=True)
            ),
            _CLASS.family(
                Sample(labels | {"class": name}, share)
                for labels, each in facts
                for name, share in each.classes.items()
            ),
        ]
