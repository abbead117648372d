"""Reports: the state of a model's traffic, of one process and of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from core_traffic.arm import quantile_ms
from core_traffic.copies import MOST_DIFFERENCES, SHADOW_RESULTS


def merged(reports: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return one report for clients, from those of all processes (ModelTraffic.report): counts are added.

    Settings are those of the first process: all processes have the same.
    """
    first = reports[0]
    numbers = sorted({int(number) for each in reports for number in each["versions"]})
    return {
        **first,
        "versions": [
            {"version": number, **_version([each["versions"].get(str(number)) for each in reports])}
            for number in numbers
        ],
        "shadows": _shadows([each["shadows"] for each in reports]),
        # A process that has started later has only the last one.
        "rollbacks": max((each["rollbacks"] for each in reports), key=len),
    }


def window_of(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the requests and latencies of one version over the windows of all processes.

    parts   of the processes: requests, errors, cells; see Arm.recent
    """
    cells = Counter[int]()
    for each in parts:
        cells.update({int(cell): count for cell, count in each["cells"].items()})
    requests = sum(each["requests"] for each in parts)
    errors = sum(each["errors"] for each in parts)
    return {
        "requests": requests,
        "errors": errors,
        "error_rate": errors / requests if requests else None,
        "p50_ms": quantile_ms(cells, 0.5),
        "p99_ms": quantile_ms(cells, 0.99),
    }


def _version(entries: Sequence[dict[str, Any] | None]) -> dict[str, Any]:
    """Return the entry of a version; None stands for a process that does not know it."""
    found = [each for each in entries if each is not None]
    results = Counter[str]()
    for each in found:
        results.update(each["results"])
    window = {
        "seconds": found[0]["window_s"],
        **window_of([each["recent"] for each in found]),
    }
    absent = [each for each in found if not each["ready"]]
    return {
        "weight": found[0]["weight"],
        "share": found[0]["share"],
        "ready": not absent,
        **({"reason": absent[0]["reason"]} if absent and absent[0]["reason"] else {}),
        "in_flight": sum(each["in_flight"] for each in found),
        **dict(results),
        "window": window,
    }


def _shadows(entries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the entries of the versions that get copies.

    entries   version → its counters, of each process
    """
    numbers = sorted({int(number) for each in entries for number in each})
    return [
        {
            "version": number,
            **_shadow([each[str(number)] for each in entries if str(number) in each]),
        }
        for number in numbers
    ]


def _shadow(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    absent = [each for each in found if not each["ready"]]
    return {
        "ready": not absent,
        **({"reason": absent[0]["reason"]} if absent and absent[0]["reason"] else {}),
        **{name: sum(each[name] for each in found) for name in (*SHADOW_RESULTS, "in_flight")},
        "largest_difference": max(each["largest_difference"] for each in found),
        "differences": _last(each["differences"] for each in found),
    }


def _last(lists: Iterable[Sequence[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return the last events of all processes, by time."""
    events = [event for each in lists for event in each]
    return sorted(events, key=lambda event: float(event["time"]))[-MOST_DIFFERENCES:]
