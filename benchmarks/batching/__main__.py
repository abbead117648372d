"""Measure the fill of batches: python -m benchmarks.batching [--seconds S] [--output FILE]

Clients ─► HTTP ─► dynamic batching ─► a model that takes the same time for any batch. For each case: the mean
batch, the mean batch of an ideal batcher for the same arrivals (ideal.py), and the delay of batches beyond
`max_queue_delay_microseconds`, with the delay of event loop timers for comparison. The exit status is 1 if
the mean batch of a case is under 90 % of the ideal.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.batching.ideal import Execution, ideal_batches, mean_batch, overshoots_ns
from benchmarks.batching.site import PORT, RECORD
from benchmarks.exchange import exchange
from benchmarks.load.generator import Target
from benchmarks.load.wrk import Wrk
from benchmarks.missing import Missing
from benchmarks.models.repository import tensors
from benchmarks.models.sample import identity
from benchmarks.spread import percentile

ROOT = Path(__file__).parents[2]
CLIENTS = 64
ENOUGH = 0.9
START_S = STOP_S = 30.0


@dataclass(frozen=True)
class Case:
    """A model and its clients.

    most       max_batch_size
    delay_us   max_queue_delay_microseconds
    busy_ms    duration of an execution
    think_ms   mean pause of a client between a response and its next request; 0 for none
    """

    most: int
    delay_us: int
    instances: int = 1
    busy_ms: int = 5
    think_ms: int = 0

    @property
    def config(self) -> str:
        return (
            f'backend: "constant"\nmax_batch_size: {self.most}\n'
            f"dynamic_batching {{ max_queue_delay_microseconds: {self.delay_us} }}\n"
            f"instance_group [ {{ kind: KIND_CPU count: {self.instances} }} ]\n"
            + f'parameters {{ key: "busy_ms" value: {{ string_value: "{self.busy_ms}" }} }}\n'
            + tensors("input", ["INPUT0"], 16)
            + tensors("output", ["OUTPUT0"], 16)
        )


CASES = (
    Case(64, 0),
    Case(64, 1_000),
    Case(16, 0),
    Case(16, 1_000),
    Case(32, 500, instances=2),
    Case(32, 0, think_ms=20),
    Case(32, 300, think_ms=20),
    Case(32, 1_500, think_ms=20),
    Case(32, 10_000, think_ms=20),
    Case(64, 300, busy_ms=1, think_ms=50),
    Case(64, 3_000, busy_ms=1, think_ms=50),
)


@dataclass(frozen=True)
class Finding:
    """The result of one case; times in µs.

    batch, possible     mean batch, and mean batch of the ideal batcher
    waited              number of batches for which an idle instance waited: only these can be late
    over_p50 … late_p99   delay of batches beyond the configured one, and delay of the loop's timers
    """

    case: Case
    executions: int
    batch: float
    possible: float
    waited: int
    over_p50: float
    over_p99: float
    late_p50: float
    late_p99: float

    @property
    def efficiency(self) -> float:
        return self.batch / self.possible if self.possible else 0.0


def find(case: Case, record: dict[str, Any]) -> Finding:
    executions = [Execution(*each) for each in record["executions"]]
    delay_ns = case.delay_us * 1000
    sizes = ideal_batches(executions, case.most, delay_ns, case.instances)
    over, late = overshoots_ns(executions, delay_ns), record["late_ns"]
    return Finding(
        case,
        len(executions),
        mean_batch(executions),
        sum(len(each.arrivals) for each in executions) / len(sizes) if sizes else 0.0,
        len(over),
        *(percentile(values, p) / 1e3 for values in (over, late) for p in (50, 99)),
    )


@contextmanager
def site(folder: Path, core: int) -> Iterator[int]:
    """Run a server with the models of `folder`; yield its port. Afterwards `folder` has its record."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.batching.site", str(folder)],
        cwd=ROOT,
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),
    )
    try:
        end = time.monotonic() + START_S
        while not (folder / PORT).exists():
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"the server is not there after {START_S:.0f} s, or has ended")
            time.sleep(0.01)
        yield int((folder / PORT).read_text())
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(STOP_S)


def measure(case: Case, load: Wrk, seconds: float, core: int) -> Finding:
    with tempfile.TemporaryDirectory(prefix="batching-") as name:
        folder = Path(name)
        model = folder / "models" / "constant"
        (model / "1").mkdir(parents=True)
        (model / "config.pbtxt").write_text(case.config)
        asked = exchange("http-binary", ["constant"], identity(1, 16))
        with site(folder, core) as port:
            sizes = asked.check(port, 0)
            found = load.run(Target(port, 0, sizes), asked, CLIENTS, seconds, folder, case.think_ms)
            if found.errors:
                raise RuntimeError(f"{found.errors} requests failed")
        return find(case, json.loads((folder / RECORD).read_text()))


HEAD = (
    f"{'max batch':>9} {'delay µs':>9} {'instances':>9} {'busy ms':>8} {'think ms':>8} {'batches':>8} "
    f"{'mean':>6} {'possible':>8} {'of it':>6}   {'waited':>6} {'later than the delay: p50':>25} "
    f"{'p99 µs':>7}   {'timers late: p50':>16} {'p99 µs':>7}"
)


def line(found: Finding) -> str:
    case = found.case
    return (
        f"{case.most:9} {case.delay_us:9,} {case.instances:9} {case.busy_ms:8} {case.think_ms:8} "
        f"{found.executions:8,} {found.batch:6.1f} {found.possible:8.1f} {found.efficiency:6.0%}   "
        f"{found.waited:6,} {found.over_p50:25,.0f} {found.over_p99:7,.0f}   "
        f"{found.late_p50:16,.0f} {found.late_p99:7,.0f}"
    )


def main(arguments: Sequence[str]) -> int:
    server_core, load_core = machine.two_cores()
    parser = argparse.ArgumentParser(prog="python -m benchmarks.batching")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each case (%(default)s)")
    parser.add_argument("--output", type=Path, help="JSON file for the findings")
    chosen = parser.parse_args(arguments)
    try:
        load = Wrk(load_core)
    except Missing as missing:
        parser.error(str(missing))
    print(HEAD, flush=True)
    findings = []
    for case in CASES:
        findings.append(measure(case, load, chosen.seconds, server_core))
        print(line(findings[-1]), flush=True)
    if chosen.output:
        chosen.output.write_text(json.dumps([asdict(each) for each in findings], indent=1) + "\n")
    return 0 if all(each.efficiency >= ENOUGH for each in findings) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
