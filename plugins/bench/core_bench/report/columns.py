"""The columns of the tables for people: which there are, and their texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from core_bench.measure.result import QUANTILES, CaseResult
from core_bench.measure.spread import Interval
from core_bench.report.numbers import count_text, spread_text, time_text

Text = Callable[[CaseResult], str]


@dataclass(frozen=True)
class Column:
    title: str
    text: Text


def columns(cases: Sequence[CaseResult]) -> list[Column]:
    """Return the columns that at least one case has a value for."""
    found = [
        Column("load", lambda case: case.level.label),
        Column("answers/s", lambda case: _count(case.rate())),
        Column("±", lambda case: spread_text(case.rate())),
    ]
    found += [Column(f"p{100 * q:g}", _latency(q)) for q in QUANTILES]
    found += [
        Column("p99 ±", lambda case: "" if case.few_for(0.99) else spread_text(case.latency(0.99)))
    ]
    if any(case.pooled("first").count for case in cases):
        found += [
            Column("first p50", _time("first", 0.5)),
            Column("first p99", _time("first", 0.99)),
            Column("between p50", _time("gaps", 0.5)),
            Column("between p99", _time("gaps", 0.99)),
        ]
    if any(case.side.kind == "openai" for case in cases):
        found += [
            Column("per token p50", _time("per_token", 0.5)),
            Column("tokens/s", lambda case: _count(case.per_second("tokens"))),
        ]
    elif any(case.count("responses") for case in cases):
        found.append(Column("responses/s", lambda case: _count(case.per_second("responses"))))
    if any(case.cpu_us() for case in cases):
        found.append(Column("server CPU", lambda case: _micro(case.cpu_us())))
    if any(case.count("failed") for case in cases):
        found.append(Column("errors", lambda case: f"{case.count('failed'):,}"))
    return found


def server_columns(cases: Sequence[CaseResult]) -> list[Column]:
    """Return the columns of the server's own statistics; [] if it has none."""
    if not any(case.part_us("queue") for case in cases):
        return []
    parts = ("queue", "compute_input", "compute_infer", "compute_output")
    found = [Column("load", lambda case: case.level.label)]
    found += [Column(part.replace("_", " "), _part(part)) for part in parts]
    return [*found, Column("rows per batch", lambda case: _count(case.rows_per_execution()))]


def _count(found: Interval | None) -> str:
    return count_text(found.median) if found else ""


def _micro(found: Interval | None) -> str:
    return time_text(found.median / 1e6) if found else ""


def _part(part: str) -> Text:
    return lambda case: _micro(case.part_us(part))


def _latency(quantile: float) -> Text:
    def text(case: CaseResult) -> str:
        found = case.latency(quantile)
        if found is None:
            return "-"
        value, sign = found.median, "≥" if not case.kept_up() else ""
        if case.few_for(quantile):
            # A round has too few answers to know it; all rounds together may have enough.
            pooled = case.pooled("latency")
            if pooled.count * (1 - quantile) < 1:
                return "-"
            value, sign = pooled.quantile(quantile) / 1e9, sign or "~"
        return sign + time_text(value)

    return text


def _time(name: str, quantile: float) -> Text:
    def text(case: CaseResult) -> str:
        found = case.times(name, quantile)
        return time_text(found.median) if found else "-"

    return text
