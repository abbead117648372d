"""What a server costs beside its framework: python -m benchmarks.backends [--backend NAME …]

For each model, on one core: the framework's own loop at its best batch, and the server asked for such
batches; then clients that send single rows, without and with dynamic batching. Rows a second, and the
server's share of the loop. Rounds alternate between loop and server, and the median of the shares counts.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from benchmarks import machine
from benchmarks.backends.case import BACKENDS, Case, cases
from benchmarks.backends.serving import ROOT, serving
from benchmarks.exchange import exchange
from benchmarks.load.generator import Target
from benchmarks.load.wrk import Wrk
from benchmarks.missing import Missing

BATCHERS = 4  # clients that send whole batches: enough for the next one to wait


@dataclass(frozen=True)
class Finding:
    """Of one case; rows a second, medians of the rounds.

    best      rows of the batch at which the framework's own loop is fastest
    share     of the loop that the server reaches with such batches
    single    clients that send single rows, without dynamic batching
    dynamic   the same with it
    """

    name: str
    best: int
    loop: float
    served: float
    share: float
    single: float
    dynamic: float


class Bench:
    """Measures cases on two cores.

    seconds   of each measurement
    """

    def __init__(self, load: Wrk, server_core: int, seconds: float, clients: int, rounds: int):
        self._load = load
        self._core = server_core
        self._seconds = seconds
        self._clients = clients
        self._rounds = rounds

    def measure(self, case: Case) -> Finding:
        with tempfile.TemporaryDirectory(prefix="backends-") as name:
            models = Path(name) / "models"
            for model, dynamic in ((case.name, False), (f"{case.name}_dynamic", True)):
                case.write(models / model / "1")
                (models / model / "config.pbtxt").write_text(case.config(dynamic=dynamic))
            version = models / case.name / "1"
            loops = [self._loop(case, version)]
            best = max(loops[0], key=lambda rows: loops[0][rows])
            run = case.load(version)
            found = []
            with serving(models, self._core) as port:
                for number in range(self._rounds):
                    if number:
                        loops.append(self._loop(case, version))
                    found.append(
                        [
                            self._ask(port, model, case, run, rows, clients, Path(name))
                            for model, rows, clients in (
                                (case.name, best, BATCHERS),
                                (case.name, 1, self._clients),
                                (f"{case.name}_dynamic", 1, self._clients),
                            )
                        ]
                    )
            own = [each[best] for each in loops]
            served, single, dynamic_rate = (median(each) for each in zip(*found, strict=True))
            shares = [each[0] / loop for each, loop in zip(found, own, strict=True)]
            return Finding(
                case.name, best, median(own), served, median(shares), single, dynamic_rate
            )

    def _loop(self, case: Case, version: Path) -> dict[int, float]:
        command = [sys.executable, "-m", "benchmarks.backends.loop", case.name, str(version)]
        done = subprocess.run(
            [*command, str(self._seconds)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
            preexec_fn=lambda: os.sched_setaffinity(0, {self._core}),
        )
        return {int(rows): rate for rows, rate in json.loads(done.stdout).items()}

    def _ask(
        self, port: int, model: str, case: Case, run: object, rows: int, clients: int, folder: Path
    ) -> float:
        asked = exchange("http-binary", [model], case.sample(run, rows))  # type: ignore[arg-type]
        target = Target(port, 0, asked.check(port, 0))
        found = self._load.run(target, asked, clients, self._seconds, folder)
        if found.errors:
            raise RuntimeError(f"{found.errors} requests to '{model}' failed")
        return rows * found.requests / found.seconds


HEAD = (
    f"{'model':>20} {'best batch':>10} {'loop rows/s':>12} {'served':>12} {'of it':>6}   "
    f"{'single rows: plain':>18} {'dynamic':>12}"
)


def line(found: Finding) -> str:
    return (
        f"{found.name:>20} {found.best:10} {found.loop:12,.0f} {found.served:12,.0f} {found.share:6.0%}   "
        f"{found.single:18,.0f} {found.dynamic:12,.0f}"
    )


def present(backends: Sequence[str]) -> Iterator[Case]:
    """The cases whose framework is installed; the others are told."""
    for case in cases(backends):
        if importlib.util.find_spec(case.package) is None:
            print(f"{case.name:>20} left out: {case.package} is not installed", flush=True)
        else:
            yield case


def main(arguments: Sequence[str]) -> int:
    server_core, load_core = machine.two_cores()
    parser = argparse.ArgumentParser(prog="python -m benchmarks.backends")
    parser.add_argument("--backend", nargs="+", choices=BACKENDS, default=BACKENDS)
    parser.add_argument(
        "--seconds", type=float, default=5.0, help="of each measurement (%(default)s)"
    )
    parser.add_argument("--rounds", type=int, default=3, help="(%(default)s)")
    parser.add_argument(
        "--clients", type=int, default=64, help="that send single rows (%(default)s)"
    )
    parser.add_argument("--output", type=Path, help="JSON file for the findings")
    chosen = parser.parse_args(arguments)
    try:
        load = Wrk(load_core)
    except Missing as missing:
        parser.error(str(missing))
    bench = Bench(load, server_core, chosen.seconds, chosen.clients, chosen.rounds)
    print(HEAD, flush=True)
    findings = []
    for case in present(chosen.backend):
        findings.append(bench.measure(case))
        print(line(findings[-1]), flush=True)
    if chosen.output:
        chosen.output.write_text(json.dumps([asdict(each) for each in findings], indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
