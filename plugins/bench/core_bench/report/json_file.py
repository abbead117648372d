"""JSON with everything: medians and bounds of each case, and the histograms of each round."""

from __future__ import annotations

import json
from typing import Any

from core_bench.measure.result import QUANTILES, CaseResult, RoundResult
from core_bench.measure.split import PARTS
from core_bench.measure.spread import Interval
from core_bench.native.engine import Histogram
from core_bench.report.outcome import Outcome, comparisons, notes

FORMAT = 1
_HISTOGRAMS = ("latency", "service", "first", "gaps", "per_token", "lag")


def json_text(outcome: Outcome) -> str:
    return json.dumps(document(outcome), indent=1, ensure_ascii=False) + "\n"


def document(outcome: Outcome) -> dict[str, Any]:
    """Return the document. Names end with the unit; a missing value is null."""
    return {
        "format": FORMAT,
        "sides": [
            {"name": side.name, "model": side.model, "url": side.url, "batch": side.batch}
            for side in outcome.sides
        ],
        "cases": [_case(each) for each in outcome.results if each.rounds],
        "comparisons": [
            {
                "level": each.level,
                "rate": _interval(each.rate),
                "p50": _interval(each.p50),
                "p99": _interval(each.p99),
                "server_cpu": _interval(each.cpu),
            }
            for each in comparisons(outcome)
        ],
        "searched": outcome.searched or None,
        "best": outcome.best.level.value if outcome.best else None,
        "lost": outcome.lost or None,
        "interrupted": outcome.interrupted,
        "notes": notes(outcome),
    }


def _case(case: CaseResult) -> dict[str, Any]:
    return {**shown_case(case), "rounds": [_round(each) for each in case.rounds]}


def shown_case(case: CaseResult) -> dict[str, Any]:
    """Return medians and bounds of a case, as in the document, without its rounds."""
    return {
        "side": case.side.name,
        "pace": case.level.pace.name.lower(),
        "load": case.level.value,
        "answers_per_s": _interval(case.rate()),
        "latency_s": _quantiles(case, "latency"),
        "first_s": _quantiles(case, "first"),
        "between_s": _quantiles(case, "gaps"),
        "per_token_s": _quantiles(case, "per_token"),
        "tokens_per_s": _interval(case.per_second("tokens")),
        "server_cpu_us": _interval(case.cpu_us()),
        "server_us": {part: _interval(case.part_us(part)) for part in PARTS},
        "rows_per_batch": _interval(case.rows_per_execution()),
        "errors": case.errors(),
        "kept_up": case.kept_up(),
    }


def _quantiles(case: CaseResult, name: str) -> dict[str, Any] | None:
    if not case.pooled(name).count:
        return None
    found = {f"p{100 * each:g}": _interval(case.times(name, each)) for each in QUANTILES}
    return {"average": _interval(case.times(name, -1)), **found}


def _round(found: RoundResult) -> dict[str, Any]:
    return {
        "seconds": found.tally.measured_ns / 1e9,
        "server_cpu_s": found.server_cpu_s,
        **found.tally.counts,
        "histograms": {
            name: _histogram(getattr(found.tally, name))
            for name in _HISTOGRAMS
            if getattr(found.tally, name).count
        },
    }


def _histogram(found: Histogram) -> dict[str, Any]:
    """Return minimum, maximum, sum, and pairs of the smallest value of a bucket and its count."""
    return {
        "low_ns": found.low,
        "high_ns": found.high,
        "average_ns": found.mean,
        "buckets_ns": [list(each) for each in found.buckets()],
    }


def _interval(found: Interval | None) -> dict[str, float] | None:
    if found is None:
        return None
    return {
        "median": found.median,
        "low": found.low,
        "high": found.high,
        "coverage": found.coverage,
    }
