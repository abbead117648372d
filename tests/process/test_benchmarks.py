"""The benchmark against this server alone, for a second: that its pieces fit together."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.batching.__main__ import Case, measure
from benchmarks.load import generator_of
from benchmarks.load.wrk import Wrk
from benchmarks.missing import Missing
from benchmarks.models import repository
from benchmarks.report.page import markdown
from benchmarks.report.result import read
from benchmarks.servers import KINDS
from benchmarks.servers.running import running

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.mark.parametrize("protocol", ["http-json", "http-binary", "grpc", "grpc-h2load"])
def test_a_second_of_load_gives_a_row_without_errors(protocol, cache, tmp_path):
    try:
        generator_of(protocol, cache, core=0)
    except Missing as missing:
        pytest.skip(str(missing))
    output = tmp_path / "result.json"

    done = subprocess.run(
        [
            *(sys.executable, "-m", "benchmarks", "--server", "core", "--scenario", "identity"),
            *("--protocol", protocol, "--connections", "2", "--rounds", "1", "--seconds", "1"),
            *("--starts", "0", "--cache", str(cache), "--output", str(output)),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    result = read(output)
    (row,) = result.rows
    (found,) = row.rounds
    assert (row.server, row.protocol, row.errors) == ("core", protocol, 0)
    assert found.requests > 0 and found.cpu_us > 0 and found.p99_us >= found.p50_us > 0
    assert result.missing == {}
    assert f"| {protocol} | 2 |" in markdown(result)


def test_the_batches_of_a_second_are_compared_with_the_ideal():
    try:
        load = Wrk(core=0)
    except Missing as missing:
        pytest.skip(str(missing))

    found = measure(Case(8, 1_000, think_ms=5), load, seconds=1, core=0)

    assert found.executions > 1 and 0 < found.batch <= 8
    assert 0 < found.possible <= 8 and found.late_p99 > 0


def test_a_server_that_a_cell_has_ended_is_started_again(cache, tmp_path):
    repository.write(tmp_path / "repositories", "one")
    kind = KINDS["core"](cache, tmp_path / "repositories")
    kind.install()

    with running(kind, "one", tmp_path / "server", core=0) as server:
        port = server.ports.http
        os.kill(server.pid, signal.SIGKILL)
        while server.alive():
            time.sleep(0.01)
        server.begin_again()

        assert server.alive() and server.ports.http == port
