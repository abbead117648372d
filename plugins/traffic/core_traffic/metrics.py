"""Metrics: what each version gets of the traffic of its model."""

from __future__ import annotations

from collections.abc import Iterable

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

    catalog = {"Traffic by version (plugin `core-traffic`)": [_REQUESTS, _SHARE]}

    def __init__(self) -> None:
        self.models: Iterable[ModelTraffic] = ()

    def families(self) -> list[Family]:
        """Return the current values."""
        requests, shares = [], []
        for model in self.models:
            for number, arm in model.shown():
                labels = {"model": model.name, "version": str(number)}
                shares.append(Sample(labels, model.share(number)))
                requests += [
                    Sample({**labels, "result": result}, count)
                    for result, count in arm.results.items()
                ]
        return [_REQUESTS.family(requests), _SHARE.family(shares)]
