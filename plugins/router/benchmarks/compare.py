"""What a front before three servers costs: core router beside nginx, haproxy and Envoy, on the same servers.

    python plugins/router/benchmarks/compare.py [--seconds 3] [--rounds 5] [--connections 16]

The front runs alone on the last processor, servers and clients on the first one. In each round, each front is
measured in turn, so that a slow moment of the machine meets all of them:

    requests/s per core   requests of many connections, per second of processor time of the front
    added p50             median duration over one connection, less that without a front in the same round

The router reads the load reports of the servers, as it does in use. The configurations of the others are
those of proxies/. A front that is not installed is left out. Nothing else should run.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))
from routing.fronts import free_ports, front, is_installed  # noqa: E402

SERVERS = 3
MODEL = "identity"
CONFIG = """
backend: "identity"
max_batch_size: 8
input { name: "INPUT0" data_type: TYPE_FP32 dims: [ 4 ] }
output { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 4 ] }
instance_group { count: 2 }
"""
FIRST, LAST = {0}, {max(os.sched_getaffinity(0))}
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Figures:
    """One round of one front. per_core is 0 without a front."""

    rate: float
    per_core: float
    p50_us: float
    added_us: float


@dataclass(frozen=True)
class Side:
    """Where requests go: a front with its process, or a server itself, whose pid is 0."""

    name: str
    pid: int
    ports: dict[str, int]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--fronts", default="router,nginx,haproxy,envoy")
    parser.add_argument("--protocols", default="http,grpc")
    flags = parser.parse_args()
    os.sched_setaffinity(0, FIRST)
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as opened:
        folder = Path(name)
        servers = opened.enter_context(serving(folder))
        sides = [Side("without", 0, dict(zip(("http", "grpc"), servers[0][:2], strict=True)))]
        for each in flags.fronts.split(","):
            if each != "router" and not is_installed(each):
                print(f"{each} is not installed")
                continue
            pid, ports = opened.enter_context(front(each, servers, folder, LAST))
            sides.append(Side(each, pid, dict(zip(("http", "grpc"), ports, strict=True))))
        for protocol in flags.protocols.split(","):
            found = [
                one_round(sides, protocol, flags.seconds, flags.connections)
                for _ in range(flags.rounds)
            ]
            show(protocol, flags, sides, found)
    return 0


def one_round(
    sides: list[Side], protocol: str, seconds: float, connections: int
) -> dict[str, Figures]:
    found: dict[str, Figures] = {}
    for side in sides:
        before_s = cpu_s(side.pid)
        requests, rate, _ = load(side, protocol, seconds, connections)
        used_s = cpu_s(side.pid) - before_s
        _, _, p50_us = load(side, protocol, seconds, 1)
        direct = found.get("without")
        added_us = p50_us - direct.p50_us if direct is not None else 0.0
        found[side.name] = Figures(rate, requests / used_s if used_s else 0.0, p50_us, added_us)
    return found


def load(side: Side, protocol: str, seconds: float, connections: int) -> tuple[int, float, float]:
    """Return the requests of one run of core bench, those per second, and their median in µs."""
    command = [sys.executable, "-m", "core", "bench", MODEL, "-i", protocol]
    command += ["-u", f"127.0.0.1:{side.ports[protocol]}", "-t", str(connections)]
    command += ["-p", f"{seconds:g}s", "--warmup", "0.2s", "--rounds", "1", "--json", "-"]
    command += ["--different-requests", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120 + seconds)
    if done.returncode:
        raise SystemExit(f"core bench, {side.name}, {protocol}: {done.stderr or done.stdout}")
    case = json.loads(done.stdout)["cases"][0]
    p50_us = case["latency_s"]["p50"]["median"] * 1e6
    return case["rounds"][0]["completed"], case["answers_per_s"]["median"], p50_us


def cpu_s(pid: int) -> float:
    """Return the processor time of a process and of its children so far; 0 for none."""
    total = 0
    for stat in Path("/proc").glob("[0-9]*/stat") if pid else ():
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[3]) == pid:  # its session
                total += int(fields[11]) + int(fields[12])
    return total / TICKS_PER_S


def show(
    protocol: str, flags: argparse.Namespace, sides: list[Side], found: list[dict[str, Figures]]
) -> None:
    print(
        f"\n{protocol}, {flags.connections} connections, then one; medians of {flags.rounds} rounds of "
        f"{flags.seconds:g} s; load of the machine {os.getloadavg()[0]:.1f}"
    )
    print(f"{'front':10} {'requests/s':>12} {'per core':>10} {'p50 µs':>9} {'added µs':>9}")
    for side in sides:
        rate, per_core, p50_us, added_us = (
            statistics.median(getattr(each[side.name], field) for each in found)
            for field in ("rate", "per_core", "p50_us", "added_us")
        )
        print(
            f"{side.name:10} {rate:12,.0f} {per_core:10,.0f} {p50_us:9.1f} {added_us:9.1f}",
            flush=True,
        )


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[list[tuple[int, int, int]]]:
    """Start the servers; yield their ports for HTTP, gRPC and metrics."""
    model = folder / "models" / MODEL
    (model / "1").mkdir(parents=True)
    (model / "config.pbtxt").write_text(CONFIG)
    found: list[tuple[int, int, int]] = []
    with contextlib.ExitStack() as opened:
        for _ in range(SERVERS):
            http, grpc, metrics = free_ports(3)
            command = [sys.executable, "-m", "core.serve", f"--model-repository={model.parent}"]
            command += [f"--http-port={http}", f"--grpc-port={grpc}", f"--metrics-port={metrics}"]
            process = subprocess.Popen(
                command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
            )
            opened.callback(process.wait)
            opened.callback(process.terminate)
            found.append((http, grpc, metrics))
        for http, *_ in found:
            wait_ready(http)
        yield found


def wait_ready(port: int) -> None:
    for _ in range(600):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/health/ready", timeout=5):
                return
        except OSError:
            time.sleep(0.2)
    raise SystemExit("core-serve did not start")


if __name__ == "__main__":
    sys.exit(main())
