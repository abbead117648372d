"""Several processes answer for the same jobs; each job has one owner."""

import json
import os
import signal
import time

import pytest

from .conftest import LINES, batch
from .processes import Process

pytest.importorskip("core_workers")


def test_jobs_of_several_workers(tmp_path):
    server = Process(tmp_path, "--workers=2", "--jobs-running=2", takes_s=0.02)
    client = server.start()
    client.repeats = True
    try:
        ids = [client.submit("m", batch(*range(n, n + 60)), LINES)["id"] for n in (0, 100, 200)]
        # Each connection reaches any worker: all of them know all jobs.
        for _ in range(10):
            assert {job["id"] for job in client.get("/v2/jobs").json["jobs"]} == set(ids)
        client.until(ids[0], lambda job: job["requests"]["succeeded"] >= 5)
        before = files(tmp_path)
        _kill_a_worker(server.process.pid)

        begun = time.monotonic()
        body = json.dumps({"job": ids[2]}).encode()
        found = client.call("POST", "/control/jobs.cancel", body).json["result"]
        assert found["state"] == "cancelled"
        assert time.monotonic() - begun < 4
        for id in ids[:2]:
            assert client.ended(id)["requests"] == {"total": 60, "succeeded": 60, "failed": 0}
            assert [line["index"] for line in client.results(id).lines] == list(range(60))
        until_replaced(tmp_path, before)
    finally:
        assert server.stop() == 0
    assert files(tmp_path) == set()


def files(folder):
    """The files of the owners of jobs."""
    return set((folder / "jobs" / "owners").iterdir())


def until_replaced(folder, before):
    """Wait until one owner of those before is gone, and the new worker is there."""
    end = time.monotonic() + 30
    while not (len(found := files(folder)) == 2 and len(found & before) == 1):
        assert time.monotonic() < end
        time.sleep(0.05)


def _kill_a_worker(supervisor):
    with open(f"/proc/{supervisor}/task/{supervisor}/children") as file:
        os.kill(int(file.read().split()[0]), signal.SIGKILL)
