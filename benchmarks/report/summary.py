"""Result → the summary of a page: python -m benchmarks.report.summary RESULT.json [PAGE]

It compares requests of mixed rows, which are typical of clients, with Triton and with requests of equal rows.
The text between the lines `<!-- summary -->` and `<!-- /summary -->` of the page is replaced.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks import spread
from benchmarks.report.page import put
from benchmarks.report.result import Result, Row, against, read
from benchmarks.report.table import REFERENCE

OPEN, CLOSE = "<!-- summary -->", "<!-- /summary -->"
# Scenario → its title, and the scenarios with as many rows in every request. They differ in nothing else.
SUMMARIZED = {
    "identity_mixed": ("identity", ("identity_4_rows_mixed", "identity_5_rows_mixed")),
    "add_sub_mixed": ("Python model", ("add_sub_4_rows_mixed", "add_sub_5_rows_mixed")),
}
HEAD = (
    "| 1 to 8 rows in turn, with ids | connections | rate, of Triton's | CPU, of Triton's | CPU µs | "
    "CPU, of equal rows |\n|---|---:|---:|---:|---:|---:|"
)


def markdown(result: Result) -> str:
    """Return the table, with the date. Raises ValueError for a result without any of these scenarios."""
    lines = [_line(result, row) for row in _summarized(result)]
    if not lines:
        raise ValueError(f"the result has no row of core in {', '.join(SUMMARIZED)}")
    return "\n".join([f"{result.date}, `{result.command}`:\n", HEAD, *lines]) + "\n"


def _summarized(result: Result) -> Iterator[Row]:
    for scenario in SUMMARIZED:
        yield from (row for row in result.rows if (row.scenario, row.server) == (scenario, "core"))


def _line(result: Result, row: Row) -> str:
    title, _ = SUMMARIZED[row.scenario]
    rate, cpu = (against(result.rows, row, REFERENCE, each) for each in ("rate", "cpu_us"))
    words = [
        f"{title}, {row.protocol}",
        str(row.connections),
        "-" if rate is None else f"{rate:.1f} times",
        "-" if cpu is None else f"{cpu:.2f}",
        f"{row.median('cpu_us'):,.1f} ± {row.spread('cpu_us'):.0%}",
        _of_equal_rows(result, row),
    ]
    return f"| {' | '.join(words)} |"


def _of_equal_rows(result: Result, row: Row) -> str:
    """Return the ratio of CPU time to requests of equal rows: the mean of those with 4 and with 5 rows."""
    _, equal = SUMMARIZED[row.scenario]
    cells = [(scenario, row.protocol, row.connections) for scenario in equal]
    found = [each for each in result.rows if each.server == row.server and each.cell in cells]
    if len(found) != len(cells):
        return "-"
    mean = [
        sum(both) / len(both)
        for both in zip(*(each.values("cpu_us") for each in found), strict=False)
    ]
    return f"{spread.ratio(row.values('cpu_us'), mean):.2f}"


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report.summary")
    parser.add_argument("result", type=Path, help="JSON file of a run")
    parser.add_argument("page", type=Path, nargs="?", default=Path("docs/operate/performance.md"))
    chosen = parser.parse_args(arguments)
    try:
        text = markdown(read(chosen.result))
        chosen.page.write_text(put(chosen.page.read_text(), text, OPEN, CLOSE))
    except (OSError, ValueError) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main(sys.argv[1:])
