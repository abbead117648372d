"""Measure one server with many models: start-up, memory, idle load, load and unload."""

from __future__ import annotations

import http.client
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import processes
from benchmarks.many_models.repository import names
from benchmarks.servers.kind import Ports
from benchmarks.servers.running import free_ports

READY_S = 600.0
STOP_S = 120.0
SETTLE_S = 2.0  # pause after readiness: the server returns memory of its start-up meanwhile
REPEATS = 5
MIB = 2**20


@dataclass(frozen=True)
class Found:
    """The costs of a server with `models` models.

    ready_s, ready_cpu_s       time and CPU time from the start of the process until all models are ready
    pss_mib                    proportional set size of all its processes
    threads                    threads of all its processes
    index_ms, metrics_ms       median time of a response
    idle                       CPU use without requests, in percent of one core
    poll_cpu_ms                CPU time of one poll of the repository, in mode poll
    load_one_ms                median time to load one more model
    unload_s                   time to unload every model with a separate request
    stop_s                     time from SIGTERM to the end, with all models loaded
    """

    models: int
    ready_s: float
    ready_cpu_s: float
    pss_mib: float
    threads: int
    index_ms: float
    metrics_ms: float
    idle: float
    poll_cpu_ms: float
    load_one_ms: float
    unload_s: float
    stop_s: float


class Server:
    """A server of this environment on free ports, in a new session.

    Raises RuntimeError if it ends, or is not ready in time.
    """

    def __init__(self, repository: Path, log: Path, *options: str):
        self.ports: Ports = free_ports()
        self._log = log
        start = time.monotonic()
        with open(log, "wb") as output:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "core.serve", f"--model-repository={repository}"),
                    f"--http-port={self.ports.http}",
                    f"--grpc-port={self.ports.grpc}",
                    f"--metrics-port={self.ports.metrics}",
                    *options,
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self.pid = self._process.pid
        while not self._ready():
            if self._process.poll() is not None or time.monotonic() - start > READY_S:
                self.end()
                raise RuntimeError(f"the server is not ready: {log.read_text()[-1000:]}")
            time.sleep(0.02)
        self.ready_s = time.monotonic() - start

    def _ready(self) -> bool:
        try:
            return self.ask("GET", "/v2/health/ready")[0] == 200
        except OSError:
            return False

    def ask(
        self, method: str, path: str, body: str = "", *, metrics: bool = False
    ) -> tuple[int, bytes]:
        """Send a request; return status and body of the response."""
        port = self.ports.metrics if metrics else self.ports.http
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=READY_S)
        try:
            connection.request(method, path, body or None)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def milliseconds(self, method: str, path: str, *, metrics: bool = False) -> float:
        """Return the median time of a response in ms."""

        def once() -> float:
            start = time.perf_counter()
            status, body = self.ask(method, path, metrics=metrics)
            if status != 200:
                raise RuntimeError(f"{path}: {status} {body[:300]!r}")
            return (time.perf_counter() - start) * 1000

        return statistics.median(once() for _ in range(REPEATS))

    def cpu_seconds(self, seconds: float) -> float:
        """Return the CPU time of all its processes in the next `seconds`."""
        before = processes.cpu_seconds(self.pid)
        time.sleep(seconds)
        return processes.cpu_seconds(self.pid) - before

    def threads(self) -> int:
        return sum(len(os.listdir(f"/proc/{each.pid}/task")) for each in processes.tree(self.pid))

    def end(self) -> float:
        """Stop the server; return the seconds from SIGTERM to the end of the process."""
        start = time.monotonic()
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        return time.monotonic() - start


@contextmanager
def started(repository: Path, log: Path, *options: str) -> Iterator[Server]:
    server = Server(repository, log, *options)
    try:
        yield server
    finally:
        server.end()


def measure(repository: Path, log: Path, count: int, idle_s: float) -> Found:
    """Start servers with the models of a repository, one after another, and measure them.

    idle_s   seconds of each measurement of an idle server
    """
    model = names(count)[0]
    with started(repository, log, "--model-control-mode=explicit", "--load-model=*") as server:
        ready_cpu_s = processes.cpu_seconds(server.pid)
        time.sleep(SETTLE_S)
        pss = processes.pss_bytes(server.pid) / MIB
        idle = server.cpu_seconds(idle_s) / idle_s * 100
        index_ms = server.milliseconds("POST", "/v2/repository/index")
        metrics_ms = server.milliseconds("GET", "/metrics", metrics=True)
        threads = server.threads()
        load_one_ms = statistics.median(_load_one(server, model) for _ in range(REPEATS))
        unload_s = _seconds(lambda: _unload_all(server, count))
    polls = max(2, int(idle_s // 2))
    with started(
        repository, log, "--model-control-mode=poll", "--repository-poll-secs=1"
    ) as server:
        time.sleep(SETTLE_S)
        polling_s = server.cpu_seconds(float(polls)) / polls
        stop_s = server.end()
    return Found(
        count,
        ready_s=server.ready_s,
        ready_cpu_s=ready_cpu_s,
        pss_mib=pss,
        threads=threads,
        index_ms=index_ms,
        metrics_ms=metrics_ms,
        idle=idle,
        poll_cpu_ms=max(0.0, polling_s - idle / 100) * 1000,
        load_one_ms=load_one_ms,
        unload_s=unload_s,
        stop_s=stop_s,
    )


def _load_one(server: Server, model: str) -> float:
    _change(server, model, "unload")
    return _seconds(lambda: _change(server, model, "load")) * 1000


def _unload_all(server: Server, count: int) -> None:
    for name in names(count):
        _change(server, name, "unload")
    status, body = server.ask("POST", "/v2/repository/index", '{"ready": true}')
    if (status, body) != (200, b"[]"):
        raise RuntimeError(f"still loaded: {body[:300]!r}")


def _change(server: Server, model: str, verb: str) -> None:
    status, body = server.ask("POST", f"/v2/repository/models/{model}/{verb}")
    if status != 200:
        raise RuntimeError(f"{verb} {model}: {status} {body[:300]!r}")


def _seconds(work: Callable[[], object]) -> float:
    start = time.monotonic()
    work()
    return time.monotonic() - start
