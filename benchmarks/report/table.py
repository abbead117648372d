"""The table on the terminal: a line for each server in each cell, printed after the cell."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks import spread
from benchmarks.report.result import Footprint, Row, against

REFERENCE = "triton"
HEAD = (
    f"{'scenario':16} {'protocol':12} {'conn':>4} {'server':9} {'infer/s':>9} {'± %':>4} "
    f"{'p50 µs':>8} {'p99 µs':>8} {'CPU µs':>8} {'± %':>4} {'errors':>6}   of {REFERENCE}: rate, CPU"
)


def lines(cell: Sequence[Row]) -> list[str]:
    return [_line(cell, row) for row in cell]


def _line(cell: Sequence[Row], row: Row) -> str:
    text = (
        f"{row.scenario:16} {row.protocol:12} {row.connections:4} {row.server:9} "
        f"{row.median('rate'):9,.0f} {row.spread('rate') * 100:4.0f} "
        f"{row.median('p50_us'):8,.0f} {row.median('p99_us'):8,.0f} "
        f"{row.median('cpu_us'):8,.1f} {row.spread('cpu_us') * 100:4.0f} {row.errors:6}"
    )
    if row.server == REFERENCE:
        return text
    rate, cpu = (against(cell, row, REFERENCE, each) for each in ("rate", "cpu_us"))
    return text if rate is None or cpu is None else f"{text}   {rate:17.2f} {cpu:5.2f}"


FOOTPRINT_HEAD = (
    f"{'fleet':16} {'server':9} {'ready s':>8} {'± %':>4} {'PSS MiB':>8} {'alone MiB':>10}"
)


def footprint_line(found: Footprint) -> str:
    return (
        f"{found.fleet:16} {found.server:9} {spread.median(found.ready_s):8.2f} "
        f"{spread.spread(found.ready_s) * 100:4.0f} {spread.median(found.pss_mib):8.1f} "
        f"{spread.median(found.alone_mib):10.1f}"
    )
