"""Metrics of the program, which appear beside those of the server.

Metric ─► MetricFamily ─► core.telemetry.registry ─► Server.metrics(), the port of metrics
"""

from __future__ import annotations

import queue
import threading
import weakref
from collections.abc import Callable, Mapping
from typing import Any

from core.telemetry.families import KindOfMetric
from core.telemetry.registry import registry
from tritonserver._api._enums import MetricKind
from tritonserver._api._errors import raised_as_triton

_KINDS: dict[MetricKind, KindOfMetric] = {MetricKind.COUNTER: "counter", MetricKind.GAUGE: "gauge"}


class _Remover:
    """Removes from the registry what the program has deleted, on its own thread.

    The garbage collector may delete an object while this thread holds the registry's lock.
    """

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[tuple[Callable[[Any], None], Any]] = queue.SimpleQueue()
        self._start = threading.Lock()
        self._thread: threading.Thread | None = None

    def watch(self, owner: object, remove: Callable[[Any], None], what: Any) -> None:
        """Call `remove(what)` some time after the owner is deleted."""
        with self._start:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="metrics", daemon=True)
                self._thread.start()
        weakref.finalize(owner, self._waiting.put, (remove, what))

    def _run(self) -> None:
        while True:
            remove, what = self._waiting.get()
            remove(what)


_remover = _Remover()


class MetricFamily:
    """The metrics of one name. All servers of the process show it, as long as it or a Metric exists.

    Any thread. Families of one name and kind share their metrics. Raises InvalidArgumentError for a name that
    a family of another kind or of the server has.
    """

    def __init__(self, kind: MetricKind, name: str, description: str):
        self.kind = kind
        with raised_as_triton():
            self._family = registry.family(name, description, _KINDS[kind])
        _remover.watch(self, registry.remove, self._family)


class Metric:
    """One value of a family. Any thread.

    labels   name → text; metrics of a family with the same labels share their value
    """

    def __init__(self, family: MetricFamily, labels: Mapping[str, str] | None = None):
        self._of = family  # keeps it
        with raised_as_triton():
            self._metric = family._family.metric(labels)
        _remover.watch(self, family._family.remove, self._metric)

    @property
    def kind(self) -> MetricKind:
        return self._of.kind

    @property
    def value(self) -> float:
        return self._metric.value()

    def increment(self, value: float) -> None:
        """Add to the value. Raises InvalidArgumentError for a counter and a negative number."""
        with raised_as_triton():
            self._metric.increment(value)

    def set_value(self, value: float) -> None:
        """Set the value of a gauge. Raises UnsupportedError for a counter."""
        with raised_as_triton():
            self._metric.set(value)
