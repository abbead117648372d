"""Custom metrics of models: families of counters, gauges and histograms.

A model makes a family, and from it a metric for each set of labels:

    family = registry.family("items", "Items that were seen", "counter")
    metric = family.metric({"kind": "a"})
    metric.increment(1)

Any thread. The owner must release metrics and families: `family.remove(metric)`, `registry.remove(family)`.
"""

from __future__ import annotations

import re
import threading
import time
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence

from core.errors import invalid, unsupported
from core.telemetry.families import Family, KindOfMetric, Sample, Together, histogram_samples
from core.telemetry.metrics.catalog import CATALOG

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]*")
_OWN = "nv_"  # prefix of the server's families
# Modes of prometheus_client: how values of several workers become one gauge. The default is the value that
# was set last, or the sum if the gauge was only incremented, as in one process.
MODES: dict[str, Together] = {
    "": "latest or sum",
    "sum": "sum",
    "max": "largest",
    "min": "smallest",
    "mostrecent": "latest",
}


class Metric:
    """The value of one label set of a family. Values are floats; only these methods change them."""

    def __init__(self, kind: KindOfMetric, buckets: Sequence[float]):
        self.kind = kind
        self.buckets = tuple(buckets)  # upper bounds, ascending; histograms only
        self.users = 0  # number of references that callers hold; under the registry's lock
        self._lock = threading.Lock()
        self._value = 0.0  # of a histogram: the sum of the observed values
        # time.monotonic_ns() of a gauge's last change and of its last `set`; 0 for never.
        self.changed_ns = self.set_ns = 0
        # Observations of each bucket; the last is +Inf.
        self._counts = [0] * (len(self.buckets) + 1)

    def increment(self, value: float) -> None:
        """Add `value`. Raises CoreError: INVALID if a counter would decrease, UNSUPPORTED for a histogram."""
        self._require("increment", "counter", "gauge")
        if self.kind == "counter" and not value >= 0:
            raise invalid(f"counter can only be incremented by values of 0 and more, got {value:g}")
        with self._lock:
            self._value += value
            if self.kind == "gauge":
                self.changed_ns = time.monotonic_ns()

    def set(self, value: float) -> None:
        """Set the value of a gauge. Raises CoreError(UNSUPPORTED) for another kind."""
        self._require("set", "gauge")
        with self._lock:
            self._value = float(value)
            self.changed_ns = self.set_ns = time.monotonic_ns()

    def observe(self, value: float) -> None:
        """Count a value in the first bucket whose bound is not below it. UNSUPPORTED for another kind."""
        self._require("observe", "histogram")
        with self._lock:
            self._counts[bisect_left(self.buckets, value)] += 1
            self._value += value

    def value(self) -> float:
        """Return the value of a counter or gauge. Raises CoreError(UNSUPPORTED) for a histogram."""
        self._require("value", "counter", "gauge")
        return self._value

    def samples(self, labels: Mapping[str, str]) -> list[Sample]:
        """Return the current samples of the metric."""
        if self.kind != "histogram":
            return [Sample(labels, self._value)]
        with self._lock:
            counts, total = list(self._counts), self._value
        return histogram_samples(labels, self.buckets, counts, total)

    def _require(self, what: str, *kinds: KindOfMetric) -> None:
        if self.kind not in kinds:
            raise unsupported(f"{self.kind} metrics do not support '{what}'")


class MetricFamily:
    """The metrics of one name, by their labels. Made by Registry.family."""

    def __init__(
        self, name: str, text: str, kind: KindOfMetric, lock: threading.Lock, mode: str = ""
    ):
        self.name = name
        self.help = text
        self.kind = kind
        self.mode = mode
        self.users = 0  # number of references that callers hold; under the registry's lock
        self._lock = lock
        self._metrics: dict[tuple[tuple[str, str], ...], Metric] = {}

    def metric(
        self, labels: Mapping[str, str] | None = None, buckets: Sequence[float] | None = None
    ) -> Metric:
        """Return the metric with these labels, one object for equal labels; the caller must `remove` it.

        buckets   upper bounds, ascending; only for a histogram. A metric that is there keeps its own
        Raises CoreError(INVALID) for invalid labels or buckets.
        """
        key = tuple(sorted((labels or {}).items()))
        for label, _ in key:
            if not _LABEL.fullmatch(label):
                raise invalid(f"metric family '{self.name}': '{label}' is no name of a label")
        buckets = [float(bound) for bound in buckets or ()]
        if bool(buckets) != (self.kind == "histogram"):
            need = "needs buckets" if self.kind == "histogram" else "takes no buckets"
            raise invalid(f"metric family '{self.name}': a {self.kind} {need}")
        if sorted(set(buckets)) != buckets:
            raise invalid(f"metric family '{self.name}': buckets {buckets} are not ascending")
        with self._lock:
            metric = self._metrics.setdefault(key, Metric(self.kind, buckets))
            metric.users += 1
            return metric

    def remove(self, metric: Metric) -> None:
        """Release a metric. Its last user removes it from the family."""
        with self._lock:
            metric.users -= 1
            for key in [key for key, each in self._metrics.items() if each is metric]:
                if metric.users <= 0:
                    del self._metrics[key]

    def family(self) -> Family:
        """Return the family with its current samples. Call under the registry's lock."""
        samples = [
            sample
            for labels, metric in self._metrics.items()
            for sample in metric.samples(dict(labels))
        ]
        if self.kind != "gauge":
            return Family(self.name, self.kind, self.help, samples)
        together = MODES[self.mode]
        changed = []
        if together == "latest":
            changed = [metric.changed_ns for metric in self._metrics.values()]
        elif together == "latest or sum":
            changed = [metric.set_ns for metric in self._metrics.values()]
        return Family(self.name, self.kind, self.help, samples, together, changed=changed)


class Registry:
    """The metric families of models."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._families: dict[str, MetricFamily] = {}
        self._reserved = set(CATALOG)

    def reserve(self, names: Iterable[str]) -> None:
        """Reserve these names, so that models cannot use them."""
        self._reserved.update(names)

    def family(self, name: str, text: str, kind: KindOfMetric, mode: str = "") -> MetricFamily:
        """Return the family of that name, one object for equal arguments; the caller must `remove` it.

        mode   how a gauge combines the values of several workers: one of MODES
        Raises CoreError(INVALID) if the name is invalid, reserved, or in use for a family with another
        text, kind or mode; if the mode is unknown; or if it is not "" and the family is no gauge.
        """
        if not _NAME.fullmatch(name) or name.startswith(_OWN) or name in self._reserved:
            raise invalid(f"'{name}' cannot be the name of a metric family of a model")
        if mode not in MODES:
            known = ", ".join(filter(None, MODES))
            raise invalid(
                f"metric family '{name}': multiprocess_mode is '{mode}', expected one of {known}"
            )
        if mode and kind != "gauge":
            raise invalid(
                f"metric family '{name}': multiprocess_mode is '{mode}', which only a gauge can have; the "
                f"values of a {kind} are added up"
            )
        with self._lock:
            found = self._families.setdefault(
                name, MetricFamily(name, text, kind, self._lock, mode)
            )
            if (found.help, found.kind) != (text, kind):
                raise invalid(
                    f"metric family '{name}' is there already, as {found.kind} with the "
                    f"description '{found.help}'"
                )
            if found.mode != mode:
                raise invalid(
                    f"metric family '{name}' is there already, with multiprocess_mode "
                    f"'{found.mode}', found '{mode}'"
                )
            found.users += 1
            return found

    def remove(self, family: MetricFamily) -> None:
        """Release a family. Its last user removes it from the registry."""
        with self._lock:
            family.users -= 1
            if family.users <= 0 and self._families.get(family.name) is family:
                del self._families[family.name]

    def families(self) -> list[Family]:
        """Return all families with their current samples, in order of creation."""
        with self._lock:
            return [family.family() for family in self._families.values()]


registry = Registry()
