"""The figures of core bench beside those of wrk, h2load and perf_analyzer, on the same servers.

    python plugins/bench/benchmarks/compare.py [--seconds 3] [--rounds 3] [--connections 16]

Two servers on this machine:

    trivial   tests/known_server.cc, which answers at once: what the load generators can do
    core      core-serve with an identity model of backend-testing, over HTTP and gRPC

The tools run in turn, each for some seconds in each round. A line has the medians of the rounds, and the
processor time of the load generator per request. A tool that is not installed is left out. $PERF_ANALYZER is
the path of that program, from a wheel of tritonclient 2.41 to 2.51, which needs CUDA's runtime: that of the
package nvidia-cuda-runtime-cu12 in the same environment is found.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from core_bench.measure.target import Target
from core_bench.plan import Side, Timing

HERE = Path(__file__).parent
CONFIG = """
backend: "identity"
max_batch_size: 8
input { name: "INPUT0" data_type: TYPE_FP32 dims: [ 4 ] }
output { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 4 ] }
instance_group { count: 2 }
"""
SCRIPT = """
wrk.method = "POST"
wrk.path = "{path}"
local file = io.open("{body}", "rb")
wrk.body = file:read("*a")
{headers}
function done(summary, latency)
  local e = summary.errors
  io.write(string.format("result %d %d %d %d %d\\n", summary.requests, summary.duration,
    e.connect + e.read + e.write + e.status + e.timeout, latency:percentile(50), latency:percentile(99)))
end
"""


@dataclass(frozen=True)
class Figures:
    rate: float
    p50_us: float
    p99_us: float
    client_us: float = 0.0  # processor time of the load generator per request


@dataclass(frozen=True)
class Job:
    side: Side
    seconds: int
    connections: int
    folder: Path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=16)
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with trivial_server(folder) as side:
            job = Job(side, flags.seconds, flags.connections, folder)
            compare("trivial server, HTTP", job, [core_bench, wrk, h2load_http], flags.rounds)
        with core_server(folder) as (http, grpc):
            job = Job(http, flags.seconds, flags.connections, folder)
            compare("core, HTTP", job, [core_bench, wrk, h2load_http, perf_analyzer], flags.rounds)
            job = Job(grpc, flags.seconds, flags.connections, folder)
            compare("core, gRPC", job, [core_bench, h2load_grpc, perf_analyzer], flags.rounds)
    return 0


def compare(
    title: str, job: Job, tools: list[Callable[[Job], Figures | None]], rounds: int
) -> None:
    print(
        f"\n{title}, {job.connections} connections, medians of {rounds} rounds of {job.seconds} s"
    )
    print(f"{'tool':15} {'requests/s':>12} {'p50 µs':>9} {'p99 µs':>9} {'client CPU µs':>14}")
    found: dict[str, list[Figures]] = {}
    for _ in range(rounds):
        for tool in tools:
            before = children_cpu_s()
            figures = tool(job)
            if figures is None:
                continue
            cpu_us = (children_cpu_s() - before) / (figures.rate * job.seconds) * 1e6
            kept = figures.client_us or cpu_us
            found.setdefault(tool.__name__, []).append(
                Figures(figures.rate, figures.p50_us, figures.p99_us, kept)
            )
    for name, all_rounds in found.items():
        rate, p50, p99, client = (
            statistics.median(getattr(each, field) for each in all_rounds)
            for field in ("rate", "p50_us", "p99_us", "client_us")
        )
        print(f"{name:15} {rate:12,.0f} {p50:9.1f} {p99:9.1f} {client:14.2f}", flush=True)


def children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def core_bench(job: Job) -> Figures:
    command = [sys.executable, "-m", "core", "bench", job.side.model, "-u", job.side.url]
    command += ["-i", job.side.protocol, "-t", str(job.connections), "--rounds", "1", "--json", "-"]
    command += ["-p", f"{job.seconds}s", "--warmup", "0s", "--different-requests", "1"]
    case = json.loads(run(command))["cases"][0]
    (only,) = case["rounds"]
    latency = case["latency_s"]
    client_us = only["cpu_ns"] / 1000 / max(only["completed"], 1)
    rate = case["answers_per_s"]["median"]
    return Figures(rate, latency["p50"]["median"] * 1e6, latency["p99"]["median"] * 1e6, client_us)


def wrk(job: Job) -> Figures | None:
    if not shutil.which("wrk"):
        return None
    path, headers, body = http_request(job)
    script = job.folder / "wrk.lua"
    lines = "\n".join(f'wrk.headers["{name}"] = "{value}"' for name, value in headers.items())
    script.write_text(SCRIPT.format(path=path, body=body, headers=lines))
    command = ["wrk", "-t1", f"-c{job.connections}", f"-d{job.seconds}", "-s", str(script)]
    text = run([*command, f"http://{job.side.url}/"])
    found = re.search(r"^result (\d+) (\d+) (\d+) (\d+) (\d+)$", text, re.MULTILINE)
    assert found, text
    requests, duration_us, errors, p50, p99 = map(int, found.groups())
    assert not errors, text
    return Figures(requests / duration_us * 1e6, p50, p99)


def h2load_http(job: Job) -> Figures | None:
    path, headers, body = http_request(job)
    return h2load(job, path, headers, body, ["--h1"])


def h2load_grpc(job: Job) -> Figures | None:
    with Target(job.side, Timing()) as target:
        plan = target.plan
        body = job.folder / "grpc.body"
        body.write_bytes(plan.requests[0].wire)
    headers = {"content-type": "application/grpc", "te": "trailers"}
    return h2load(job, plan.path, headers, body, [])


def h2load(
    job: Job, path: str, headers: dict[str, str], body: Path, more: list[str]
) -> Figures | None:
    if not shutil.which("h2load"):
        return None
    log = job.folder / "h2load.log"
    log.unlink(missing_ok=True)
    command = ["h2load", *more, "-t1", "-m1", f"-c{job.connections}", f"-D{job.seconds}"]
    command += ["-d", str(body), f"--log-file={log}"]
    command += [each for pair in headers.items() for each in ("-H", ": ".join(pair))]
    run([*command, f"http://{job.side.url}{path}"])
    times = sorted(int(line.split("\t")[2]) for line in log.read_text().splitlines())
    rate = len(times) / job.seconds
    return Figures(rate, times[len(times) // 2], times[len(times) * 99 // 100])


def perf_analyzer(job: Job) -> Figures | None:
    program = os.environ.get("PERF_ANALYZER")
    if not program:
        return None
    table = job.folder / "perf_analyzer.csv"
    command = [program, "-m", job.side.model, "-i", job.side.protocol, "-u", job.side.url]
    command += [f"--concurrency-range={job.connections}", "-f", str(table), "--async"]
    # One window is a third of the time; it needs three, and they may differ.
    command += ["-p", str(job.seconds * 1000 // 3), "-r", "3", "-s", "999"]
    # The program is linked with CUDA's runtime, which it does not use here.
    found = sorted(Path(program).absolute().parents[1].glob("lib/**/nvidia/cuda_runtime/lib"))
    run(command, {"LD_LIBRARY_PATH": str(found[0])} if found else None)
    (row,) = csv.DictReader(table.read_text().splitlines())
    p50, p99 = float(row["p50 latency"]), float(row["p99 latency"])
    return Figures(float(row["Inferences/Second"]), p50, p99)


def http_request(job: Job) -> tuple[str, dict[str, str], Path]:
    """Return path, headers and a file with the body of the request that core bench sends."""
    with Target(job.side, Timing()) as target:
        head, _, content = target.plan.requests[0].wire.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    for name in ("Host", "Content-Length"):
        del headers[name]
    body = job.folder / "http.body"
    body.write_bytes(content)
    return first.split()[1], headers, body


def run(command: list[str], more: Mapping[str, str] | None = None) -> str:
    """Return what a program prints. `more`: variables of its environment."""
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, env={**os.environ, **(more or {})}
    )
    if done.returncode:
        raise SystemExit(f"{command[0]} ended with {done.returncode}: {done.stderr or done.stdout}")
    return done.stdout


@contextlib.contextmanager
def trivial_server(folder: Path) -> Iterator[Side]:
    program = folder / "known_server"
    source = HERE.parent / "tests" / "known_server.cc"
    subprocess.run(["c++", "-O2", "-std=c++17", str(source), "-o", str(program)], check=True)
    with subprocess.Popen(
        [str(program), "0"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin and process.stdout
        port = int(process.stdout.readline())
        yield Side("m", "m", f"127.0.0.1:{port}", different=1)
        process.stdin.close()


@contextlib.contextmanager
def core_server(folder: Path) -> Iterator[tuple[Side, Side]]:
    model = folder / "models" / "identity"
    (model / "1").mkdir(parents=True)
    (model / "config.pbtxt").write_text(CONFIG)
    http, grpc = free_ports()
    command = [sys.executable, "-m", "core.serve", f"--model-repository={folder / 'models'}"]
    command += [f"--http-port={http}", f"--grpc-port={grpc}", "--allow-metrics=false"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
        try:
            wait_ready(http)
            yield tuple(
                Side("identity", "identity", f"127.0.0.1:{port}", protocol=protocol, different=1)
                for protocol, port in (("http", http), ("grpc", grpc))
            )
        finally:  # else the end of `with` waits for it
            process.terminate()


def free_ports() -> tuple[int, int]:
    import socket

    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]


def wait_ready(port: int) -> None:
    for _ in range(300):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/health/ready", timeout=5):
                return
        except OSError:
            time.sleep(0.2)
    raise SystemExit("core-serve did not start")


if __name__ == "__main__":
    sys.exit(main())
