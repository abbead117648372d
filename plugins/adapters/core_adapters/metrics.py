"""Expose the results of a Seldon class's `metrics` on the server's metrics endpoint."""

from __future__ import annotations

from typing import Any

from backend_python.api.errors import TritonModelException
from backend_python.api.metrics import Metric, MetricFamily

_KINDS = {
    "COUNTER": MetricFamily.COUNTER,
    "GAUGE": MetricFamily.GAUGE,
    "TIMER": MetricFamily.HISTOGRAM,  # ms, shown as seconds
}
_BUCKETS_S = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0]


class Metrics:
    """Counters, gauges and timers of one instance. `count` creates each when `metrics` first returns it."""

    def __init__(self, model: str):
        self._model = model
        self._families: dict[str, MetricFamily] = {}
        self._metrics: dict[tuple[str, tuple[tuple[str, str], ...]], Metric] = {}

    def count(self, entries: list[dict[str, Any]]) -> None:
        """Record [{"type": "COUNTER", "key": "seen", "value": 1, "tags": {…}}, …].

        Raises TritonModelException for an invalid entry.
        """
        for each in entries:
            try:
                kind, key, value = each["type"], str(each["key"]), float(each["value"])
                family = _KINDS[kind]
            except (KeyError, TypeError, ValueError):
                raise TritonModelException(
                    f"metrics() gave {each!r}; expected a dict with type (COUNTER, GAUGE or TIMER), "
                    "key and a number as value"
                ) from None
            metric = self._metric(key, family, each.get("tags") or {})
            if kind == "COUNTER":
                metric.increment(value)
            elif kind == "GAUGE":
                metric.set(value)
            else:
                metric.observe(value / 1000)

    def _metric(self, key: str, kind: Any, tags: dict[str, Any]) -> Metric:
        labels = {"model": self._model, **{str(name): str(text) for name, text in tags.items()}}
        place = (key, tuple(sorted(labels.items())))
        if place not in self._metrics:
            if key not in self._families:
                self._families[key] = MetricFamily(key, f"{key} of a model's metrics()", kind)
            buckets = _BUCKETS_S if kind is MetricFamily.HISTOGRAM else None
            self._metrics[place] = self._families[key].Metric(labels, buckets)
        return self._metrics[place]
