"""Metrics: the memory of models, and what the budget has done."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable

from core.telemetry.families import Family, Sample, histogram_samples
from core.telemetry.metrics.catalog import Entry
from core.telemetry.metrics.source import MetricSource
from core_memory_budget.account import Account

_BOUNDS_S = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)

_BYTES = Entry(
    "core_model_memory_bytes",
    "gauge",
    "Memory of a loaded or loading model version, in bytes",
    ("model", "version", "device"),
)
_BUDGET = Entry("core_memory_budget_bytes", "gauge", "Budget of a device, in bytes", ("device",))
_USED = Entry(
    "core_memory_used_bytes", "gauge", "Memory that models take of a budget, in bytes", ("device",)
)
_LOADS = Entry(
    "core_model_loads_on_request",
    "counter",
    "Loads that requests have started",
    ("model", "result"),
)
_UNLOADS = Entry(
    "core_model_evictions",
    "counter",
    "Unloads to make room (memory) and after a time without requests (idle)",
    ("model", "reason"),
)
_REFUSALS = Entry(
    "core_model_memory_refusals",
    "counter",
    "Loads that were refused for want of memory",
    ("model",),
)
_WAITING = Entry(
    "core_model_waiting_requests",
    "gauge",
    "Requests that wait for the load of their model",
    ("model",),
)
_WAITED = Entry(
    "core_model_load_wait_seconds",
    "histogram",
    "Times for which requests have waited for the load of their model, in seconds",
    ("model",),
)


class MemoryMetrics(MetricSource):
    """The metrics of one server. Event loop only.

    account   set by the governor, like budget and waiting: model → requests that wait
    """

    catalog = {
        "Memory of models (plugin `core-memory-budget`)": [
            *(_BYTES, _BUDGET, _USED, _LOADS, _UNLOADS, _REFUSALS, _WAITING, _WAITED)
        ]
    }

    def __init__(self) -> None:
        self.account = Account()
        self.budget: dict[str, int] = {}
        self.waiting: Callable[[], dict[str, int]] = dict
        self.loads: Counter[tuple[str, str]] = Counter()
        self.unloads: Counter[tuple[str, str]] = Counter()
        self.refusals: Counter[str] = Counter()
        self._waited: dict[str, tuple[list[int], list[float]]] = {}

    def waited(self, model: str, seconds: float) -> None:
        """Count the time that one request of a model has waited."""
        counts, total = self._waited.setdefault(model, ([0] * (len(_BOUNDS_S) + 1), [0.0]))
        counts[bisect_left(_BOUNDS_S, seconds)] += 1
        total[0] += seconds

    def families(self) -> list[Family]:
        """Return the current values."""
        used = self.account.used()
        return [
            _BYTES.family(
                Sample({"model": key, "version": number, "device": device}, size)
                for (key, number, device), size in self._bytes().items()
            ),
            _BUDGET.family(Sample({"device": each}, size) for each, size in self.budget.items()),
            _USED.family(Sample({"device": each}, used.get(each, 0)) for each in self.budget),
            _LOADS.family(
                Sample({"model": key, "result": result}, count)
                for (key, result), count in self.loads.items()
            ),
            _UNLOADS.family(
                Sample({"model": key, "reason": reason}, count)
                for (key, reason), count in self.unloads.items()
            ),
            _REFUSALS.family(Sample({"model": key}, n) for key, n in self.refusals.items()),
            _WAITING.family(Sample({"model": key}, n) for key, n in self.waiting().items()),
            _WAITED.family(
                sample
                for key, (counts, total) in self._waited.items()
                for sample in histogram_samples({"model": key}, _BOUNDS_S, counts, total[0])
            ),
        ]

    def _bytes(self) -> Counter[tuple[str, str, str]]:
        found: Counter[tuple[str, str, str]] = Counter()
        for entry in self.account.entries:
            for device, size in entry.bytes.items():
                found[str(entry.key), str(entry.number), device] += size
        return found
