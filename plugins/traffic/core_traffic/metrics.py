"""Metrics: what each version gets of the traffic of its model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from core.telemetry.families import Family, Sample
from core.telemetry.metrics.catalog import VERSION, Entry
from core.telemetry.metrics.source import MetricSource
from core_traffic.model import ModelTraffic

_REQUESTS = Entry(
    "core_traffic_requests",
    "counter",
    "Requests without a version that a version has got by its share, by result",
    (*VERSION, "result"),
)
_SHADOW = Entry(
    "core_traffic_shadow_requests",
    "counter",
    "Requests that were copied to a version, by what the comparison of the answers has shown",
    (*VERSION, "result"),
)
_ROLLBACKS = Entry(
    "core_traffic_rollbacks",
    "counter",
    "Times that a version has lost its share because it broke the objective",
    VERSION,
    together="largest",  # each process counts each of them
)
_SHARE = Entry(
    "core_traffic_share",
    "gauge",
    "Share of a version in the traffic of its model, from 0 to 1",
    VERSION,
    together="first",
)


class TrafficMetrics(MetricSource):
    """The metrics of one server. Event loop only.

    models   set at the start of the server
    """

    catalog = {
        "Traffic by version (plugin `core-traffic`)": [_REQUESTS, _SHARE, _SHADOW, _ROLLBACKS]
    }

    def __init__(self) -> None:
        self.models: Iterable[ModelTraffic] = ()

    def families(self) -> list[Family]:
        """Return the current values."""
        requests, shares, copies, rollbacks = [], [], [], []
        for model in self.models:
            for number, arm in model.shown():
                labels = {"model": model.name, "version": str(number)}
                shares.append(Sample(labels, model.share(number)))
                rollbacks.append(Sample(labels, model.rollback_counts[number]))
                requests += _by_result(labels, arm.results)
            for number, counts in sorted(model.shown_shadows().items()):
                labels = {"model": model.name, "version": str(number)}
                copies += _by_result(labels, counts.results)
        return [
            _REQUESTS.family(requests),
            _SHARE.family(shares),
            _SHADOW.family(copies),
            _ROLLBACKS.family(rollbacks),
        ]


def _by_result(labels: Mapping[str, str], results: Mapping[str, int]) -> list[Sample]:
    return [Sample({**labels, "result": result}, count) for result, count in results.items()]
