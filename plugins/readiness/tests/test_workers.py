"""A server of two workers: each of them knows the file, and the longest wait of all counts."""

import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest
from conformance.launcher import free_ports
from core_readiness.overload import WaitControl

from core.control import OPERATIONS
from core.control.exchange import ProcessResults

CONNECTIONS = 16  # each reaches any of the workers


def test_the_longest_wait_of_all_workers_counts():
    merge = OPERATIONS[f"{WaitControl.name}.longest_s"].merge

    assert merge(ProcessResults(0, {0: 0.1, 1: 0.5, 2: 0.0}, {}), {}) == 0.5


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


def test_a_drain_concerns_all_workers(tmp_path):
    pytest.importorskip("core_workers")
    drain, models = tmp_path / "drain", tmp_path / "models"
    models.mkdir()
    http, grpc, metrics = free_ports(3)
    command = [
        *(sys.executable, "-m", "core.serve", f"--model-repository={models}", "--workers=2"),
        *(f"--http-port={http}", f"--grpc-port={grpc}", f"--metrics-port={metrics}"),
        *(f"--drain-file={drain}", "--overload-wait-secs=5"),
    ]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until(lambda: statuses(http) == {200})

        drain.touch()
        assert statuses(http) == {503}
        os.unlink(drain)
        assert statuses(http) == {200}
    finally:
        server.send_signal(signal.SIGTERM)
        assert server.wait(timeout=120) == 0
