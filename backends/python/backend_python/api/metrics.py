"""MetricFamily and Metric: a model's own metrics, on the server's metrics endpoint."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, ClassVar, SupportsFloat

from backend_python.api.arguments import public_text
from backend_python.api.errors import TritonModelException
from backend_python.api.host import Host, current


class MetricKind(enum.IntEnum):
    COUNTER = 0
    GAUGE = 1
    HISTOGRAM = 2


class MetricFamily:
    """A named metric with its kind. Its metrics must not outlive it. Any thread.

    multiprocess_mode   how a server with several workers (--workers) combines a gauge's values: "sum",
                        "max", "min" or "mostrecent". None: the value that was set last, or the sum if it
                        was only incremented. Triton has one process, and no such argument
    Raises TritonModelException if the name exists with another kind, description or mode.
    """

    COUNTER: ClassVar = MetricKind.COUNTER
    GAUGE: ClassVar = MetricKind.GAUGE
    HISTOGRAM: ClassVar = MetricKind.HISTOGRAM

    def __init__(
        self,
        name: str,
        description: str,
        kind: MetricKind,
        multiprocess_mode: str | None = None,
    ):
        self._host: Host | None = None  # none yet: __del__ has nothing to drop
        if not isinstance(kind, MetricKind):
            raise TypeError(
                f"MetricFamily: kind must be MetricFamily.COUNTER, GAUGE or HISTOGRAM, "
                f"found {kind!r}"
            )
        self._kind = kind
        about = {
            "name": public_text("MetricFamily: name", name),
            "description": public_text("MetricFamily: description", description),
            "kind": kind.name.lower(),
            "mode": public_text("MetricFamily: multiprocess_mode", multiprocess_mode or ""),
        }
        host = current()
        self._number: int = _ask(host, "Error when creating MetricFamily", "metric_family", about)
        self._host = host

    def Metric(
        self, labels: dict[str, str] | None = None, buckets: Sequence[float] | None = None
    ) -> Metric:
        """Return the metric with these labels; create it if it is new.

        buckets   rising upper bounds; required for a histogram, not allowed for others
        """
        if labels is not None and not isinstance(labels, dict):
            raise TritonModelException("Failed to create metric. Labels must be a dictionary.")
        if buckets is not None and not isinstance(buckets, (list, tuple)):
            raise TritonModelException("Failed to create metric. Buckets must be a list.")
        if self._kind is MetricKind.HISTOGRAM and buckets is None:
            raise TritonModelException("Failed to create metric. Missing required buckets.")
        if self._kind is not MetricKind.HISTOGRAM and buckets is not None:
            raise TritonModelException("Failed to create metric. Unexpected buckets found.")
        labels = labels or {}
        if not all(isinstance(text, str) for pair in labels.items() for text in pair):
            raise TritonModelException("Failed to create metric. Labels must be str for str.")
        for pair in labels.items():
            for each in pair:
                public_text("Metric: a label", each)
        bounds = [_number("a bucket", bound) for bound in buckets or ()]
        return Metric(self, labels, bounds)

    def __del__(self) -> None:
        if self._host is not None:
            self._host.drop("metric_family", self._number)


class Metric:
    """One metric of a family; `family.Metric(labels)` makes it. Any thread."""

    def __init__(self, family: MetricFamily, labels: dict[str, str], buckets: list[float]):
        self._host: Host | None = None
        host = family._host
        assert host is not None
        about = {"family": family._number, "labels": labels, "buckets": buckets}
        self._number: int = _ask(host, "Error when creating Metric", "metric", about)
        self._host = host

    def increment(self, value: float) -> None:
        """Add to a counter (value >= 0) or a gauge."""
        self._operate("increment", value)

    def set(self, value: float) -> None:
        """Set a gauge."""
        self._operate("set", value)

    def observe(self, value: float) -> None:
        """Count a value in a histogram."""
        self._operate("observe", value)

    def value(self) -> float:
        """Return the value of a counter or a gauge."""
        return float(self._operate("value", 0.0))

    def _operate(self, operation: str, value: float) -> Any:
        assert self._host is not None
        found = _number(f"the value of {operation}()", value)
        what = f"Failed to {'get' if operation == 'value' else operation} metric value"
        arguments = {"metric": self._number, "operation": operation, "value": found}
        return _ask(self._host, what, "metric_operate", arguments)

    def __del__(self) -> None:
        if self._host is not None:
            self._host.drop("metric", self._number)


def _number(what: str, value: Any) -> float:
    if not isinstance(value, SupportsFloat):
        raise TypeError(f"{what} must be a number, found {type(value)}")
    return float(value)


def _ask(host: Host, failure: str, operation: str, arguments: dict[str, Any]) -> Any:
    try:
        return host.call(operation, arguments)
    except TritonModelException as error:
        raise TritonModelException(f"{failure}: {error}") from None
