"""Models in processes of their own, which grow after the load: the account follows them."""

import subprocess
import sys

import pytest

from .conftest import Double, account, answers, loaded, until

MIB = 1 << 20
CHILD = """
import sys
kept = []
print("ready", flush=True)
for line in sys.stdin:
    kept.append(b"x" * (int(line) << 20))
    print("grown", flush=True)
"""


class InProcess(Double):
    """An instance with a process that takes as many MiB more as its next request says."""

    def open(self):
        self.child = subprocess.Popen(
            [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.child.stdout.readline() == "ready\n"
        self.pids = (self.child.pid,)
        self.model.backend.opened[self.model.name] = self

    def grow(self, mib):
        print(mib, file=self.child.stdin, flush=True)
        assert self.child.stdout.readline() == "grown\n"

    def close(self):
        with self.child:
            self.child.stdin.close()
        assert self.child.returncode == 0


@pytest.fixture
def in_processes(backend, monkeypatch):
    """Models of the backend run in processes, and report no memory. They are looked at often."""
    monkeypatch.setattr("core_memory_budget.refresh.EVERY_S", 0.05)
    monkeypatch.setattr(backend.model, "memory_usage", lambda self: ())
    backend.instance, backend.opened = InProcess, {}
    return backend


async def test_metrics_and_statistics_follow_a_process_that_grows(serve, models, in_processes, ask):
    models.write("a", "0", estimate="1M")
    server = await serve(memory_budget=["1G"])
    await answers(server, ask, "a")
    at_load = account(server).used()["host"]

    in_processes.opened["a"].grow(64)
    await until(lambda: account(server).used()["host"] >= at_load + 60 * MIB)

    (version,) = [each for each in server.manager.versions() if each.state == "READY"]
    (shown,) = version.memory_usage()
    assert shown["byte_size"] == account(server).used()["host"]


async def test_a_process_that_grows_beyond_the_budget_unloads_a_model_that_is_worth_less(
    serve, models, in_processes, ask
):
    models.write("a", "0", estimate="1M")
    models.write("b", "0", estimate="1M", priority="1")
    server = await serve(memory_budget=["150M"])
    await answers(server, ask, "a", "b")
    assert loaded(server) == ["a", "b"]

    in_processes.opened["a"].grow(64)
    in_processes.opened["b"].grow(100)
    await until(lambda: loaded(server) == ["b"])
    await until(lambda: len(account(server).entries) == 1)

    assert 100 * MIB < account(server).used()["host"] <= 150 * MIB
