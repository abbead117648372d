"""RayMetrics: the counters and gauges of a replica's server, as metrics of Ray.

core.Server.metrics ─► [RayMetrics] ─► ray.serve.metrics ─► Ray's Prometheus endpoint of the node
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from core.telemetry.families import Family, Sample

_RESERVED = ("application", "deployment", "replica")  # tags that Serve adds

Tags = tuple[str, ...]
"""Values of the labels of a sample, in the order of the names of its family."""


class RayMetrics:
    """Writes families of metrics to Ray: counters as counters, gauges as gauges, without their histograms.

    counter, gauge   classes of ray.serve.metrics
    The first samples of a family define its labels. A sample that has gone is 0. Not thread-safe.
    """

    def __init__(self, counter: Callable[..., Any], gauge: Callable[..., Any]):
        self._classes = {"counter": counter, "gauge": gauge}
        self._families: dict[str, _RayFamily] = {}

    def write(self, families: Iterable[Family]) -> None:
        """Write the values of now. Ray shows them with its next report."""
        for family in families:
            made = self._classes.get(family.kind)
            if made is None or not (family.samples or family.name in self._families):
                continue
            if family.name not in self._families:
                self._families[family.name] = _RayFamily(family, made)
            self._families[family.name].write(family.samples)


class _RayFamily:
    """One family: its metric of Ray, and the values that Ray has."""

    def __init__(self, family: Family, made: Callable[..., Any]):
        self._names = tuple(name for name in family.samples[0].labels if name not in _RESERVED)
        self._metric = made(family.name, description=family.help, tag_keys=self._names)
        self._counts = family.kind == "counter"
        self._known: dict[Tags, float] = {}

    def write(self, samples: Iterable[Sample]) -> None:
        values: dict[Tags, float] = {}
        for each in samples:
            tags = tuple(each.labels.get(name, "") for name in self._names)
            values[tags] = values.get(tags, 0.0) + each.value
        gone = () if self._counts else self._known.keys() - values.keys()
        for tags in gone:
            self._metric.set(0.0, tags=self._named(tags))
        for tags, value in values.items():
            if self._counts:
                self._count(tags, value)
            else:
                self._metric.set(float(value), tags=self._named(tags))
        self._known = values

    def _count(self, tags: Tags, value: float) -> None:
        before = self._known.get(tags, 0.0)
        # A model that was loaded anew counts from 0.
        grown = value - before if value >= before else value
        if grown > 0:
            self._metric.inc(float(grown), tags=self._named(tags))

    def _named(self, tags: Tags) -> dict[str, str]:
        return dict(zip(self._names, tags, strict=True))
