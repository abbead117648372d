"""Result → Markdown: python -m benchmarks.report.page RESULT.json [benchmarks/NOTEBOOK.md]

The text of the page is written by hand around two lines, `<!-- measured -->` and `<!-- /measured -->`; the
text between them is replaced. A missing page is created with these lines.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks import spread
from benchmarks.report.result import Footprint, Result, Row, against, read
from benchmarks.report.table import REFERENCE
from benchmarks.scenarios import SCENARIOS

OPEN, CLOSE = "<!-- measured -->", "<!-- /measured -->"
PAGE = f"# Notebook of measurements\n\nThe method: `benchmarks/README.md`.\n\n{OPEN}\n{CLOSE}\n"
FLEET_TITLES = {"one": "one identity model", "python": "two Python models", "many": "200 models"}


def markdown(result: Result) -> str:
    """Return all tables of a result, with machine, versions, command and date."""
    parts = ["\n".join(_circumstances(result))]
    for name, rows in _by_scenario(result).items():
        title = SCENARIOS[name].title if name in SCENARIOS else name
        parts.append(f"### {title[0].upper()}{title[1:]}\n\n" + _scenario_table(rows))
    if result.footprints:
        parts.append("### Start and memory at rest\n\n" + _footprint_table(result.footprints))
    return "\n\n".join(parts) + "\n"


def _circumstances(result: Result) -> Iterator[str]:
    machine = ", ".join(f"{key} {value}" for key, value in result.machine.items())
    yield f"{result.date}; {machine}.\n"
    yield f"`{result.command}`\n"
    for server, versions in result.versions.items():
        yield f"- {server}: " + ", ".join(f"{name} {each}" for name, each in versions.items())
    for name, why in result.missing.items():
        yield f"- left out: {name} ({' '.join(why.split())})"
    yield ""
    yield (
        "Of each server: infer/s, CPU µs a request, and p50 / p99 in µs; medians of the rounds, with the "
        "distance between the outer rounds. The last columns are core over "
        f"{REFERENCE}, the median of the ratios of each round."
    )


def _by_scenario(result: Result) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in result.rows:
        found.setdefault(row.scenario, []).append(row)
    return found


def _scenario_table(rows: Sequence[Row]) -> str:
    servers = list(dict.fromkeys(row.server for row in rows))
    compared = {"core", REFERENCE} <= set(servers)
    head = ["protocol", "connections"]
    for server in servers:
        head += [f"{server}: infer/s", "CPU µs", "p50 / p99 µs"]
    head += ["infer/s, of Triton's", "CPU, of Triton's"] if compared else []
    lines = [_cells(head), "|---|" + "---:|" * (len(head) - 1)]
    cells: dict[tuple[str, str, int], list[Row]] = {}
    for row in rows:
        cells.setdefault(row.cell, []).append(row)
    for (_, protocol, connections), cell in cells.items():
        by_server = {row.server: row for row in cell}
        words = [protocol, str(connections)]
        for server in servers:
            words += _figures(by_server.get(server))
        if compared:
            words += _ratios(cell, by_server.get("core"))
        lines.append(_cells(words))
    return "\n".join(lines)


def _figures(row: Row | None) -> list[str]:
    if row is None:
        return ["-", "-", "-"]
    note = f" ({row.errors} errors)" if row.errors else ""
    return [
        f"{row.median('rate'):,.0f} ± {row.spread('rate'):.0%}{note}",
        f"{row.median('cpu_us'):,.1f} ± {row.spread('cpu_us'):.0%}",
        f"{row.median('p50_us'):,.0f} / {row.median('p99_us'):,.0f}",
    ]


def _ratios(cell: Sequence[Row], ours: Row | None) -> list[str]:
    found = [ours and against(cell, ours, REFERENCE, each) for each in ("rate", "cpu_us")]
    return ["-" if each is None else f"{each:.2f}" for each in found]


def _footprint_table(footprints: Sequence[Footprint]) -> str:
    head = ["with", "server", "ready in s", "PSS MiB", "MiB if alone on the machine"]
    lines = [_cells(head), "|---|---|---:|---:|---:|"]
    for each in footprints:
        words = [FLEET_TITLES.get(each.fleet, each.fleet), each.server]
        words += [f"{spread.median(each.ready_s):.2f} (± {spread.spread(each.ready_s):.0%})"]
        words += [f"{spread.median(each.pss_mib):.1f}", f"{spread.median(each.alone_mib):.1f}"]
        lines.append(_cells(words))
    return "\n".join(lines)


def _cells(words: Sequence[str]) -> str:
    return "| " + " | ".join(words) + " |"


def put(page: str, tables: str, open: str = OPEN, close: str = CLOSE) -> str:
    """Return the page with `tables` between its two lines. Raises ValueError without these lines."""
    before, opened, rest = page.partition(open)
    _, closed, after = rest.partition(close)
    if not opened or not closed:
        raise ValueError(f"the page lacks the lines {open} and {close}")
    return f"{before}{open}\n\n{tables}\n{close}{after}"


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report.page")
    parser.add_argument("result", type=Path, help="JSON file of a run")
    parser.add_argument("page", type=Path, nargs="?", default=Path("benchmarks/NOTEBOOK.md"))
    chosen = parser.parse_args(arguments)
    try:
        tables = markdown(read(chosen.result))
        page = chosen.page.read_text() if chosen.page.exists() else PAGE
        chosen.page.write_text(put(page, tables))
    except (OSError, ValueError) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main(sys.argv[1:])
