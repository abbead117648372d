"""Metrics: which caller waits for which model, and what each has got.

The first callers of a model, and those with a weight of their own, have labels; all others share one.
"""

from __future__ import annotations

from collections.abc import Iterable

from core.telemetry.families import Family, Sample
from core.telemetry.metrics.catalog import Entry
from core.telemetry.metrics.source import MetricSource
from core_fairness.fair_queue import FairQueue
from core_fairness.flow import Counts
from core_fairness.report import OTHERS

_BY_CALLER = ("model", "caller")
_WAITING = Entry("core_fair_waiting", "gauge", "Requests that wait for a turn", _BY_CALLER)
_REQUESTS = Entry(
    "core_fair_requests",
    "counter",
    "Requests by what became of them: through (a turn came), refused (because of a bound), left (cancelled "
    "or too late before it)",
    (*_BY_CALLER, "result"),
)
_COST = Entry(
    "core_fair_cost",
    "counter",
    "Rows or tokens of the requests that had their turn",
    (*_BY_CALLER, "unit"),
)
_WAIT = Entry("core_fair_wait_us", "counter", "Time that requests waited for a turn", _BY_CALLER)


class FairMetrics(MetricSource):
    """The metrics of one server. Event loop only.

    queues   set at the start of the server
    """

    catalog = {"Fair shares (plugin `core-fairness`)": [_WAITING, _REQUESTS, _COST, _WAIT]}

    def __init__(self) -> None:
        self.queues: Iterable[FairQueue] = ()

    def families(self) -> list[Family]:
        """Return the current values."""
        waiting, requests, costs, waits = [], [], [], []
        for (model, caller, unit), (count, counts) in self._sums().items():
            labels = {"model": model, "caller": caller}
            waiting.append(Sample(labels, count))
            waits.append(Sample(labels, counts.wait_ns // 1000))
            costs.append(Sample({**labels, "unit": unit}, counts.cost))
            results = {
                "through": counts.requests,
                "refused": counts.refused,
                "left": counts.left,
            }
            requests += [
                Sample({**labels, "result": result}, number) for result, number in results.items()
            ]
        return [
            _WAITING.family(waiting),
            _REQUESTS.family(requests),
            _COST.family(costs),
            _WAIT.family(waits),
        ]

    def _sums(self) -> dict[tuple[str, str, str], tuple[int, Counts]]:
        """Return model, caller and unit → requests that wait, and counts. Versions of a model are one."""
        found: dict[tuple[str, str, str], tuple[int, Counts]] = {}

        def add(queue: FairQueue, caller: str, waiting: int, counts: Counts) -> None:
            key = (queue.name, caller, queue.cost.unit)
            before, total = found.get(key, (0, Counts()))
            total.add(counts)
            found[key] = (before + waiting, total)

        for queue in self.queues:
            add(queue, OTHERS, 0, queue.callers.others)
            for flow in queue.callers:
                add(queue, flow.name if flow.labelled else OTHERS, flow.waiting, flow.counts)
        return found
