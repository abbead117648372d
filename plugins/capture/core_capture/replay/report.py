"""The report of a replay, as text and as JSON."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

from core_capture.records.record import Record
from core_capture.replay.run import Results

_SHOWN = 10  # differences in the text
_ROWS = {
    "equal": "answers are equal",
    "differing": "answers differ",
    "unanswered": "no answer",
    "unsent": "no form over gRPC or HTTP",
    "uncompared": "not compared",
}
_QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}


def report(results: Results, recorded_ns: int) -> str:
    """Return the report as lines of text.

    recorded_ns   time that the records took
    """
    return "\n".join(_lines(results, recorded_ns))


def _lines(results: Results, recorded_ns: int) -> Iterator[str]:
    total = sum(results.counts.values())
    yield (
        f"replayed {total:,} requests in {results.duration_ns / 1e9:.2f} s "
        f"(recorded in {recorded_ns / 1e9:.2f} s)"
    )
    for name, text in _ROWS.items():
        if results.counts[name] or name == "equal":
            yield f"  {text:<26}{results.counts[name]:>6,}"
    if results.late_ns > 10_000_000:
        late_ms = results.late_ns / 1e6
        yield f"  late by up to {late_ms:,.0f} ms: the machine of the replay is too slow for the pace"
    if results.now_ns:
        for name, values in (("recorded", results.before_ns), ("now", results.now_ns)):
            found = "  ".join(
                f"{key} {each / 1e6:,.2f} ms" for key, each in quantiles(values).items()
            )
            yield f"  latency {name:<12}{found}"
    for each in results.differences[:_SHOWN]:
        yield f"  #{each.number} {title(each.record)}: {each.text}"
    if (more := len(results.differences) - _SHOWN) > 0:
        yield f"  … and {more:,} more; --json lists up to 1,000"


def title(record: Record) -> str:
    """Return time, method and path of a record."""
    seconds, rest = divmod(record.time_ns, 10**9)
    clock = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds))
    return f"{clock}.{rest // 10**6:03d} {record.method} {record.path}"


def quantiles(values: Sequence[int]) -> dict[str, int]:
    ordered = sorted(values)
    return {
        name: ordered[min(len(ordered) - 1, int(share * len(ordered)))]
        for name, share in _QUANTILES.items()
    }


def as_json(results: Results, recorded_ns: int) -> dict[str, Any]:
    """Return the report as an object for JSON."""
    return {
        **{name: results.counts[name] for name in _ROWS},
        "duration_ns": results.duration_ns,
        "recorded_ns": recorded_ns,
        "late_ns": results.late_ns,
        "latency_ns": {
            name: quantiles(values) if values else {}
            for name, values in (("recorded", results.before_ns), ("now", results.now_ns))
        },
        "differences": [
            {
                "number": each.number,
                "time_ns": each.record.time_ns,
                "model": each.record.model,
                "path": each.record.path,
                "text": each.text,
            }
            for each in results.differences
        ],
    }
