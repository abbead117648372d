"""python -m benchmarks: options → servers → cells → table, JSON. README.md describes the measurements."""

from __future__ import annotations

import datetime
import shlex
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks import footprint, machine
from benchmarks.measure import LeaveOut, Measure
from benchmarks.missing import Missing
from benchmarks.models import repository
from benchmarks.options import Options, parse
from benchmarks.report import table
from benchmarks.report.result import Result, Row
from benchmarks.scenarios import SCENARIOS
from benchmarks.servers import KINDS
from benchmarks.servers.kind import FLEETS, Kind


def main(arguments: Sequence[str]) -> int:
    options = parse(arguments)
    # The end of the benchmark must also end the servers.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    start = time.monotonic()
    result = Result(
        datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        shlex.join(["python", "-m", "benchmarks", *arguments]),
        machine.describe(),
    )
    if options.server_core == options.load_core:
        print(f"servers and load share core {options.load_core}: rates are of both together")
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as name:
        run(options, result, Path(name))
    result.write(options.output)
    print(f"\n{options.output}, after {(time.monotonic() - start) / 60:.1f} minutes")
    return 0 if result.rows or result.footprints else 1


def run(options: Options, result: Result, folder: Path) -> None:
    """Install and measure the servers, and write into `result`; the caller removes `folder`."""

    def leave_out(name: str, why: Exception) -> None:
        result.missing[name] = str(why)
        print(f"left out: {name}: {why}", flush=True)

    repositories = folder / "repositories"
    for name in needed(options):
        repository.write(repositories, name)
    kinds = list(installed(options, repositories, result, leave_out))
    print(f"\n{table.HEAD}", flush=True)

    def cell_done(rows: list[Row]) -> None:
        print("\n".join(table.lines(rows)), flush=True)
        result.write(options.output)  # a later failure keeps the results so far

    Measure(options, kinds, result, leave_out, cell_done).run(folder / "servers")
    if options.starts:
        print(f"\n{table.FOOTPRINT_HEAD}", flush=True)
        result.footprints = footprint.footprints(
            kinds, options.starts, folder / "starts", options.server_core, leave_out
        )
        for found in result.footprints:
            print(table.footprint_line(found), flush=True)


def needed(options: Options) -> list[str]:
    """Return the repositories of all fleets to start."""
    fleets = [SCENARIOS[name].fleet for name in options.scenario]
    if options.starts:
        fleets += footprint.FLEETS
    return list(dict.fromkeys(name for fleet in fleets for name in FLEETS[fleet]))


def installed(
    options: Options, repositories: Path, result: Result, leave_out: LeaveOut
) -> Iterator[Kind]:
    """Install the servers and yield those that can be started; the others are skipped."""
    for name in options.server:
        kind: Kind = KINDS[name](options.cache.resolve(), repositories)
        print(f"preparing {name}", flush=True)  # takes a minute the first time
        try:
            result.versions[name] = kind.install()
        except Missing as missing:
            leave_out(name, missing)
            continue
        yield kind


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
