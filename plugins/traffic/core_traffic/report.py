"""Reports: the state of a model's traffic, of one process and of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from core_traffic.arm import quantile_ms


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
    }


def _version(entries: Sequence[dict[str, Any] | None]) -> dict[str, Any]:
    """Return the entry of a version; None stands for a process that does not know it."""
    found = [each for each in entries if each is not None]
    results, cells, requests, errors = Counter[str](), Counter[int](), 0, 0
    for each in found:
        results.update(each["results"])
        recent = each["recent"]
        requests += recent["requests"]
        errors += recent["errors"]
        cells.update({int(cell): count for cell, count in recent["cells"].items()})
    window = {
        "seconds": found[0]["window_s"],
        "requests": requests,
        "errors": errors,
        "error_rate": errors / requests if requests else None,
        "p50_ms": quantile_ms(cells, 0.5),
        "p99_ms": quantile_ms(cells, 0.99),
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
