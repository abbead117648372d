"""The account as JSON, for the control operation model_memory.account."""

from __future__ import annotations

from typing import Any

from core.governing import name_of
from core_memory_budget.account import Entry
from core_memory_budget.governor import Governor


async def report(governor: Governor) -> dict[str, Any]:
    """Return budget and use of this process, and a row for each version that is loaded or out."""
    await governor.refresher.refresh()
    account, budget = governor.account, governor.reservations.budget
    waiting = governor.waiting_requests()
    rows = [_row(entry, waiting) for entry in account.entries]
    for key in governor.stand_ins.keys:
        for version in governor.stand_ins.of(key):
            if not account.has(key, version.version):
                named = {"name": version.name, "version": str(version.version), "state": "out"}
                told = {"reason": version.reason, "bytes": {}, "waiting": waiting.get(str(key), 0)}
                rows.append({**named, **told})
    return {
        "budget": dict(budget),
        "used": {**dict.fromkeys(budget, 0), **account.used()},
        "models": sorted(rows, key=lambda row: (row["name"], int(row["version"]))),
    }


def sizes(governor: Governor) -> list[list[Any]]:
    """Return [namespace or "", name, version, bytes by device] of each loaded version of this process."""
    return [
        [each.version.namespace or "", each.version.name, str(each.number), dict(each.bytes)]
        for each in governor.account.entries
        if each.version is not None and each.state == "loaded"
    ]


def _row(entry: Entry, waiting: dict[str, int]) -> dict[str, Any]:
    return {
        "name": str(name_of(entry.key)) if entry.version is None else entry.version.name,
        "version": str(entry.number),
        "state": entry.state,
        "bytes": dict(entry.bytes),
        "source": entry.source,
        "exact": entry.exact,
        "load_seconds": round(entry.load_s, 3),
        "pinned": entry.settings.pin,
        "priority": entry.settings.priority,
        "load_on_request": entry.settings.on_request,
        "waiting": waiting.get(str(entry.key), 0),
    }
