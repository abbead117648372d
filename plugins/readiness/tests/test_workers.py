"""A server of two workers: each of them knows the file, and all agree whether the server is overloaded."""

import asyncio
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import SimpleNamespace

import pytest
from conformance.launcher import free_ports
from core_readiness.overload import Limit, Overload, WaitControl
from core_testing.leftovers import children

from core.control import OPERATIONS
from core.control.exchange import ProcessResults

CONNECTIONS = 16  # each reaches any of the workers


class Workers:
    """The exchange of several workers in one process. Each has one model, with a wait that a test sets."""

    def __init__(self, count, limit_s):
        self.waits_s = [0.0] * count
        self.controls = [WaitControl(self.models(i), Limit(limit_s)) for i in range(count)]
        for each in self.controls:
            each.exchange = self
        self.overloads = [
            Overload(limit_s, each.excess_s, iter(range(100)).__next__) for each in self.controls
        ]

    def models(self, number):
        class Models:
            def versions(_):
                return [SimpleNamespace(state="READY", number=number)]

        return Models()

    def wait_estimate_s(self, version):
        return self.waits_s[version.number]

    async def ask(self, operation, arguments):
        found = {i: await each.handlers()[operation]() for i, each in enumerate(self.controls)}
        return ProcessResults(0, found, {})

    def overloaded(self, number):
        """Ask one worker whether the server is ready."""
        return asyncio.run(self.overloads[number].reason()) != ""


@pytest.fixture
def workers(monkeypatch):
    found = Workers(2, 0.5)
    monkeypatch.setattr("core_readiness.overload.wait_estimate_s", found.wait_estimate_s)
    return found


def test_the_longest_wait_of_the_overloaded_workers_counts():
    merge = OPERATIONS[f"{WaitControl.name}.excess_s"].merge

    assert merge(ProcessResults(0, {0: 0.1, 1: 0.5, 2: 0.0}, {}), {}) == 0.5


def test_workers_that_are_asked_in_turn_agree_whether_the_server_is_overloaded(workers):
    workers.waits_s[1] = 0.6
    assert workers.overloaded(0)

    workers.waits_s[1] = 0.4  # below the limit, above the half of it
    assert workers.overloaded(1) and workers.overloaded(0)

    workers.waits_s[1] = 0.2
    assert not workers.overloaded(1)
    workers.waits_s[1] = 0.4
    assert not workers.overloaded(0) and not workers.overloaded(1)


def statuses(port):
    """Return what readiness says on connections of their own."""
    found = set()
    for _ in range(CONNECTIONS):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/health/ready") as answer:
                found.add(answer.status)
        except urllib.error.HTTPError as error:
            found.add(error.code)
        except OSError:
            found.add(0)
    return found


def until(fact):
    end = time.monotonic() + 120
    while not fact():
        assert time.monotonic() < end, "it has not come true in two minutes"
        time.sleep(0.1)


def worker_of(server):
    """Return the id of a process that serves for a server of workers."""
    return next(
        each
        for each in children(server.pid)
        if b"core_workers" in Path(f"/proc/{each}/cmdline").read_bytes()
    )


@pytest.mark.skipif(sys.platform != "linux", reason="finds the workers in /proc")
def test_a_drain_concerns_all_workers_also_those_that_start_again(tmp_path):
    pytest.importorskip("core_workers")
    drain, models = tmp_path / "drain", tmp_path / "models"
    models.mkdir()
    http, grpc, metrics = free_ports(3)
    command = [
        *(sys.executable, "-m", "core.serve", f"--model-repository={models}", "--workers=2"),
        *(f"--http-port={http}", f"--grpc-port={grpc}", f"--metrics-port={metrics}"),
        *(f"--drain-file={drain}", "--overload-wait-secs=5"),
    ]
    log = tmp_path / "log"
    with log.open("wb") as output:
        server = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        until(lambda: statuses(http) == {200})

        drain.touch()
        assert statuses(http) == {503}
        os.kill(worker_of(server), signal.SIGKILL)
        until(lambda: b" is up again" in log.read_bytes())
        assert statuses(http) == {503}
        os.unlink(drain)
        assert statuses(http) == {200}
    finally:
        server.send_signal(signal.SIGTERM)
        assert server.wait(timeout=120) == 0
