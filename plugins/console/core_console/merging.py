"""Merge the rows of several processes into one for each model version. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from core.telemetry.families import Summary
from core_console.rows import Row

_WORST_FIRST = ("UNAVAILABLE", "UNLOADING", "LOADING", "READY")
_AT_REST = "unloaded: "  # start of the reason of a version that its next request loads
_QUANTILES = (0.5, 0.95, 0.99)
_SAME = {"model", "version", "platform", "ensemble", "decoupled", "batch", "delay_us", "bounds_us"}
_LARGEST = {"wait_s", "loaded_s", "last_ms"}
_SPECIAL = {"state", "reason", "serves", "lanes", "spread"}


def merged(answers: Mapping[int, Sequence[Row]]) -> list[Row]:
    """Return one row for each version: sums of counters, the worst state, the lanes of all processes.

    answers   process → its rows
    """
    several = len(answers) > 1
    found: dict[tuple[str, int], Row] = {}
    for process, rows in answers.items():
        for row in rows:
            key = row["model"], row["version"]
            if several and "lanes" in row:
                lanes = {f"worker {process} · {name}": lane for name, lane in row["lanes"].items()}
                row = {**row, "lanes": lanes}
            found[key] = _together(found[key], row) if key in found else row
    return [found[key] for key in sorted(found)]


def finished(rows: Iterable[Row]) -> list[Row]:
    """Return rows for the page: quantiles in milliseconds in place of the cells of a sketch."""
    return [_with_quantiles(row) if "spread" in row else row for row in rows]


def _with_quantiles(row: Row) -> Row:
    low, high, cells = row["spread"]
    numbered = {int(cell): count for cell, count in cells.items()}
    summary = Summary({}, _QUANTILES, 0, 0, low, high, numbered)
    values = [each.value for each in summary.samples()[2:]]
    rest = {name: value for name, value in row.items() if name != "spread"}
    if not numbered:
        return rest
    return {**rest, "quantiles_ms": [round(value / 1000, 4) for value in values]}


def _together(one: Row, other: Row) -> Row:
    worst = min(one, other, key=_rank)
    found = {**other, **one, "state": worst["state"], "reason": worst["reason"]}
    for name, value in other.items():
        if name in _SAME or name in _SPECIAL or name not in one:
            continue
        found[name] = max(one[name], value) if name in _LARGEST else _sum(one[name], value)
    if "serves" in one and "serves" in other:
        found["serves"] = one["serves"] and other["serves"]
        found["lanes"] = one["lanes"] | other["lanes"]
    if "spread" in one and "spread" in other:
        found["spread"] = _spreads(one["spread"], other["spread"])
    return found


def _rank(row: Row) -> int:
    """Return the place of a row from the worst state to the best; a version at rest comes last.

    Each worker loads on request by itself: one may serve a version that is at rest in another.
    """
    if row["state"] == "UNAVAILABLE" and row["reason"].startswith(_AT_REST):
        return len(_WORST_FIRST)
    return _WORST_FIRST.index(row["state"])


def _sum(one: Any, other: Any) -> Any:
    if isinstance(one, Mapping):
        return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}
    if isinstance(one, list):
        return [a + b for a, b in zip(one, other, strict=True)]
    return one + other


def _spreads(one: Sequence[Any], other: Sequence[Any]) -> list[Any]:
    filled = [each for each in (one, other) if each[2]]
    low = min((each[0] for each in filled), default=0)
    high = max((each[1] for each in filled), default=0)
    return [low, high, _sum(one[2], other[2])]
