"""core capture drift: how the tensors of two captures, or of two windows, differ."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from datetime import datetime, timezone
from fnmatch import fnmatchcase
from typing import Any

import orjson

from core.errors import invalid
from core_capture.drift.compare import Drift, compare
from core_capture.drift.sketches import Sketches, TensorSketch
from core_capture.records.reader import CaptureReader

summary = "compare the tensors of two captures, or of two windows of one"

_QUANTILES = (0.01, 0.25, 0.5, 0.75, 0.99)
_MOST_CLASSES = 5  # that a line names


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "other",
        metavar="OTHER",
        help="the later capture; FOLDER@FROM..TO is a window of one, in UTC: "
        "traffic@2026-11-28T10:00..2026-11-28T11:00",
    )
    add("--model", action="append", default=[], help="only this model; repeatable")
    add(
        "--threshold",
        type=float,
        default=0.2,
        metavar="PSI",
        help="population stability index from which on a tensor drifts (%(default)s)",
    )
    add(
        "--class",
        dest="predicted",
        action="append",
        default=[],
        metavar="TENSOR",
        help="tensor of scores: the class of a row is the index of its largest element; repeatable",
    )
    add("--json", action="store_true", help="print JSON")


def run(reader: CaptureReader, namespace: argparse.Namespace) -> int:
    """Compare. Return 1 if a tensor drifts, else 0."""
    before = _sketched(reader, namespace)
    other = opened(namespace.other)
    now = _sketched(other, namespace)
    for loss in other.losses:
        print(loss, file=sys.stderr)
    found = compare(before, now)
    if not found:
        raise invalid("neither capture has tensors of the v2 protocol")
    if namespace.json:
        rows = [_row(each, namespace.threshold) for each in found]
        print(orjson.dumps(rows, option=orjson.OPT_INDENT_2).decode())
    else:
        for each in found:
            print("\n".join(_lines(each, namespace.threshold)))
    return int(any(each.drifts(namespace.threshold) for each in found))


def opened(text: str) -> CaptureReader:
    """Return the reader of a path, or of a window of it: PATH@FROM..TO. Raises CoreError(INVALID)."""
    path, at, window = text.rpartition("@")
    if not at or ".." not in window:
        return CaptureReader(text)
    start, _, end = window.partition("..")
    return CaptureReader(path, _time_ns(start, 0), _time_ns(end, 2**63 - 1))


def _time_ns(text: str, default: int) -> int:
    if not text:
        return default
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise invalid(f"'{text}' is no time, such as 2026-11-28T10:00") from None
    if time.tzinfo is None:
        time = time.replace(tzinfo=timezone.utc)
    return int(time.timestamp() * 1e9)


def _sketched(reader: CaptureReader, namespace: argparse.Namespace) -> Sketches:
    made = Sketches(namespace.predicted)
    for record in reader.records():
        if not namespace.model or any(fnmatchcase(record.model, each) for each in namespace.model):
            made.add(record)
    return made


def _lines(drift: Drift, threshold: float) -> Iterator[str]:
    key = drift.key
    verdict = "drifts" if drift.drifts(threshold) else "stays"
    psi = "" if math.isnan(drift.psi) else f", PSI {drift.psi:.3f}"
    if math.isnan(drift.psi) and drift.before is not None and drift.now is not None:
        verdict = "has too few elements"
    version = f" version {key.version}" if key.version else ""
    yield f"model {key.model}{version}, {key.side} {key.tensor}: {verdict}{psi}"
    for name, sketch in (("before", drift.before), ("now", drift.now)):
        yield f"  {name:<8}{'absent' if sketch is None else _line(sketch)}"


def _line(sketch: TensorSketch) -> str:
    numbers = sketch.numbers
    found = f"{numbers.count:,} elements, mean {numbers.mean:.4g} ± {numbers.deviation:.4g}, "
    found += "quantiles " + " ".join(f"{each:.4g}" for each in numbers.quantiles(_QUANTILES))
    if numbers.nan:
        found += f", {numbers.nan_share:.2%} NaN"
    shares = sketch.classes.shares()
    if shares:
        often = sketch.classes.counts.most_common(_MOST_CLASSES)
        found += ", classes " + " ".join(f"{name!r} {shares[name]:.1%}" for name, _ in often)
    return found


def _row(drift: Drift, threshold: float) -> dict[str, Any]:
    return {
        **drift.key._asdict(),
        "psi": None if math.isnan(drift.psi) else drift.psi,
        "drifts": drift.drifts(threshold),
        "before": _facts(drift.before),
        "now": _facts(drift.now),
    }


def _facts(sketch: TensorSketch | None) -> dict[str, Any] | None:
    if sketch is None:
        return None
    numbers = sketch.numbers
    return {
        "datatype": sketch.datatype,
        "elements": numbers.count,
        "mean": numbers.mean,
        "deviation": numbers.deviation,
        "nan_share": numbers.nan_share,
        "quantiles": dict(zip(map(str, _QUANTILES), numbers.quantiles(_QUANTILES), strict=True)),
        "classes": sketch.classes.shares(),
    }
