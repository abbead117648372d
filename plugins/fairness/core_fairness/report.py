"""Reports: who waits for what, and who has got what, of one process and of all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from core_fairness.fair_queue import FairQueue
from core_fairness.flow import CallerFlow, Counts

OTHERS = "(others)"
MOST_CALLERS = 100  # in a report

_SUMS = ("waiting", "in_flight", "requests", "cost", "refused", "left", "wait_s")


def report_of(queues: Iterable[FairQueue]) -> list[dict[str, Any]]:
    """Return the state of the queues of one process: an entry for each model."""
    return [
        {
            "model": queue.name,
            "unit": queue.cost.unit,
            "group": None if queue.member is None else queue.member.group.name,
            "waiting": queue.waiting,
            "inside": queue.used,
            "window": queue.window.limit,
            "straight": queue.straight,
            "callers": [
                *(_caller(flow) for flow in queue.callers),
                *(
                    [_entry(OTHERS, None, 0, 0, queue.callers.others)]
                    if queue.callers.others.requests
                    else []
                ),
            ],
        }
        for queue in queues
    ]


def _caller(flow: CallerFlow) -> dict[str, Any]:
    return _entry(flow.name, flow.weight, flow.waiting, flow.in_flight, flow.counts)


def _entry(
    name: str, weight: float | None, waiting: int, in_flight: int, counts: Counts
) -> dict[str, Any]:
    return {
        "caller": name,
        "weight": weight,
        "waiting": waiting,
        "in_flight": in_flight,
        "requests": counts.requests,
        "cost": counts.cost,
        "refused": counts.refused,
        "left": counts.left,
        "wait_s": counts.wait_ns / 1e9,
    }


def merged(entries: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one entry for each model from those of all processes and versions: counts are added."""
    models: dict[str, dict[str, Any]] = {}
    for entry in entries:
        known = models.get(entry["model"])
        if known is None:
            models[entry["model"]] = {**entry, "callers": _added({}, entry["callers"])}
            continue
        for name in ("waiting", "inside", "window", "straight"):
            known[name] += entry[name]
        _added(known["callers"], entry["callers"])
    return [{**each, "callers": _shown(each["callers"])} for _, each in sorted(models.items())]


def _added(
    known: dict[str, dict[str, Any]], entries: Iterable[dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    for entry in entries:
        found = known.get(entry["caller"])
        if found is None:
            known[entry["caller"]] = dict(entry)
        else:
            for name in _SUMS:
                found[name] += entry[name]
    return known


def _shown(callers: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the entries of the callers with the most, with their shares; the rest as one entry."""
    total = sum(each["cost"] for each in callers.values())
    others = callers.pop(OTHERS, None)
    ordered = sorted(callers.values(), key=lambda each: (-each["cost"], each["caller"]))
    rest: dict[str, dict[str, Any]] = {}
    _added(rest, [others] if others else [])
    for each in ordered[MOST_CALLERS:]:
        _added(rest, [{**each, "caller": OTHERS, "weight": None}])
    return [
        {**each, "share": each["cost"] / total if total else 0.0}
        for each in (*ordered[:MOST_CALLERS], *rest.values())
    ]
