"""Compare the server with a bare framework: python -m benchmarks.backends [--backend NAME …]

It measures rows per second for each model, on one core: a loop over the framework with its best batch, the
server with requests of such batches, and the framework behind a bare socket; then clients that send single
rows, without and with dynamic batching. They take turns of a second, since the speed of the machine may
change by a factor of two within a minute: each turn of the server is compared with the loop just before and
just after it, and the medians of these quotients count.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import ParamSpec, TypeVar

from benchmarks import machine
from benchmarks.backends.bare import bare
from benchmarks.backends.case import BACKENDS, Case, cases
from benchmarks.backends.loop import Loop, best, sizes
from benchmarks.backends.serving import serving
from benchmarks.exchange import Exchange, exchange
from benchmarks.load.generator import Target
from benchmarks.load.wrk import Wrk
from benchmarks.missing import Missing
from benchmarks.models.sample import Sample

P = ParamSpec("P")
Result = TypeVar("Result")

BATCHERS = 4  # clients that send whole batches: enough for the next one to wait


@dataclass(frozen=True)
class Finding:
    """The result of one case, in rows per second; medians of the rounds.

    best      rows of the batch at which the loop is fastest
    share     rate of the server with such batches, as a fraction of the loop's
    bare      rate of the framework behind a bare socket, as a fraction of the loop's
    added_us  time that the server adds to the loop's time for such a batch, in µs
    single    rate with clients that send single rows, without dynamic batching
    dynamic   rate with the same clients and dynamic batching
    gain      dynamic divided by single
    """

    name: str
    best: int
    loop: float
    served: float
    share: float
    bare: float
    added_us: float
    single: float
    dynamic: float
    gain: float

    @property
    def batch_ms(self) -> float:
        """Return the time of the loop for a batch in ms."""
        return 1000 * self.best / self.loop


@dataclass(frozen=True)
class Round:
    """Rows per second of loop, server and clients with single rows; the bare server's part of the loop's."""

    loop: float
    served: float
    bare: float
    single: float
    dynamic: float


def _finding(name: str, rows: int, found: Sequence[Round]) -> Finding:
    return Finding(
        name,
        rows,
        median(each.loop for each in found),
        median(each.served for each in found),
        median(each.served / each.loop for each in found),
        median(each.bare for each in found),
        median(1e6 * rows * (1 / each.served - 1 / each.loop) for each in found),
        median(each.single for each in found),
        median(each.dynamic for each in found),
        median(each.dynamic / each.single for each in found),
    )


def _alone(work: Callable[P, Result], *args: P.args, **kwargs: P.kwargs) -> Result:
    """Return work(…) of a process of its own, which ends: only there are frameworks imported.

    Some cannot be in one process, and threads of others make it unsafe to start further processes.
    """
    with ProcessPoolExecutor(1, get_context("fork")) as process:
        return process.submit(work, *args, **kwargs).result()


def _write(case: Case, models: Mapping[Path, bool]) -> None:
    """Write models. `models` has their folders, and whether they have dynamic batching."""
    for folder, dynamic in models.items():
        case.write(folder / "1")
        (folder / "config.pbtxt").write_text(case.config(dynamic=dynamic))


def _samples(case: Case, version: Path, sizes: Sequence[int]) -> list[Sample]:
    """Return a request of each number of rows, with the framework's results."""
    run = case.load(version)
    return [case.sample(run, rows) for rows in sizes]


class Bench:
    """Measure cases on two cores.

    seconds   duration of each turn of the server, a whole number
    """

    def __init__(self, load: Wrk, server_core: int, seconds: float, clients: int, rounds: int):
        self._load = load
        self._core = server_core
        self._seconds = seconds
        self._clients = clients
        self._rounds = rounds

    def measure(self, case: Case) -> Finding:
        with tempfile.TemporaryDirectory(prefix="backends-") as name:
            folder = Path(name)
            plain, dynamic = case.name, f"{case.name}_dynamic"
            _alone(
                _write, case, {folder / "models" / plain: False, folder / "models" / dynamic: True}
            )
            version = folder / "models" / plain / "1"
            loop = Loop(case, version, self._core)
            try:
                rows = best({each: loop.rate(each, self._seconds / 2) for each in sizes(case)})
                many, one = _alone(_samples, case, version, (rows, 1))
                batch = exchange("http-binary", [plain], many)
                single = exchange("http-binary", [plain], one)
                gathered = exchange("http-binary", [dynamic], one)
                with (
                    serving(folder / "models", self._core) as port,
                    bare(case, version, self._core) as bare_port,
                ):
                    for asked in (batch, single, gathered):  # warm up placements and caches
                        self._ask(port, asked, self._clients, folder)
                    self._ask(bare_port, batch, BATCHERS, folder)
                    found = [
                        self._round(loop, rows, port, bare_port, (batch, single, gathered), folder)
                        for _ in range(self._rounds)
                    ]
            finally:
                loop.close()
        return _finding(case.name, rows, found)

    def _round(
        self,
        loop: Loop,
        rows: int,
        port: int,
        bare_port: int,
        asked: Sequence[Exchange],
        folder: Path,
    ) -> Round:
        batch, single, gathered = asked
        half = self._seconds / 2
        before = loop.rate(rows, half)
        served = rows * self._ask(port, batch, BATCHERS, folder)
        between = loop.rate(rows, half)
        alone = rows * self._ask(bare_port, batch, BATCHERS, folder)
        after = loop.rate(rows, half)
        return Round(
            (before + between) / 2,
            served,
            alone / ((between + after) / 2),
            self._ask(port, single, self._clients, folder),
            self._ask(port, gathered, self._clients, folder),
        )

    def _ask(self, port: int, asked: Exchange, clients: int, folder: Path) -> float:
        target = Target(port, 0, asked.check(port, 0))
        found = self._load.run(target, asked, clients, self._seconds, folder)
        if found.errors:
            raise RuntimeError(f"{found.errors} requests failed: {asked.requests[0].path}")
        return found.requests / found.seconds


HEAD = (
    f"{'model':>20} {'best batch':>10} {'ms':>6} {'loop rows/s':>12} {'served':>12} "
    f"{'of it':>6} {'bare':>5} {'added µs':>9}   "
    f"{'single rows: plain':>18} {'dynamic':>12} {'gain':>6}"
)


def line(found: Finding) -> str:
    return (
        f"{found.name:>20} {found.best:10} {found.batch_ms:6.2f} {found.loop:12,.0f} {found.served:12,.0f} "
        f"{found.share:6.0%} {found.bare:5.0%} {found.added_us:9,.0f}   "
        f"{found.single:18,.0f} {found.dynamic:12,.0f} {found.gain:5.1f}x"
    )


def present(backends: Sequence[str]) -> Iterator[Case]:
    """Yield the cases whose framework is installed; print the others."""
    for case in cases(backends):
        if not _is_installed(case.package):
            print(f"{case.name:>20} left out: {case.package} is not installed", flush=True)
        else:
            yield case


def _check_installed(backends: Sequence[str]) -> None:
    """Raise Missing if a backend has no case whose framework is installed."""
    for name in backends:
        packages = {case.package for case in cases([name])}
        if not any(map(_is_installed, packages)):
            raise Missing(
                f"--backend {name}: {' or '.join(sorted(packages))} is not installed in this environment; "
                "`make bench-formats` makes one with the large frameworks"
            )


def _is_installed(package: str) -> bool:
    """Return whether a package, or one of a namespace, can be imported."""
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:  # there is no such namespace
        return False


def main(arguments: Sequence[str]) -> int:
    server_core, load_core = machine.two_cores()
    parser = argparse.ArgumentParser(prog="python -m benchmarks.backends")
    parser.add_argument(
        "--backend",
        nargs="+",
        choices=BACKENDS,
        help="to measure; by default each whose framework is installed",
    )
    parser.add_argument(
        "--seconds", type=float, default=1.0, help="of each turn, whole ones (%(default)s)"
    )
    parser.add_argument("--rounds", type=int, default=9, help="(%(default)s)")
    parser.add_argument(
        "--clients", type=int, default=64, help="that send single rows (%(default)s)"
    )
    parser.add_argument("--output", type=Path, help="JSON file for the findings")
    chosen = parser.parse_args(arguments)
    try:
        _check_installed(chosen.backend or ())
        load = Wrk(load_core)
    except Missing as missing:
        parser.error(str(missing))
    bench = Bench(load, server_core, chosen.seconds, chosen.clients, chosen.rounds)
    print(HEAD, flush=True)
    findings = []
    for case in present(chosen.backend or BACKENDS):
        findings.append(bench.measure(case))
        print(line(findings[-1]), flush=True)
    if chosen.output:
        chosen.output.write_text(json.dumps([asdict(each) for each in findings], indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
