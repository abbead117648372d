"""Utilization: which share of its capacity a server says that it uses."""

from types import SimpleNamespace

import pytest
from core_orca.utilization import Utilization

from core.config import ModelConfig
from core.telemetry.statistics import Statistics


class Version:
    """A loaded model whose statistics the test writes."""

    def __init__(self, name, instances=1, most_rows=0, batching=True):
        self.key, self.version, self.state = name, 1, "READY"
        self.config = ModelConfig(max_batch_size=most_rows)
        if most_rows and batching:
            self.config.dynamic_batching.SetInParent()
        self.chain = SimpleNamespace(instances=instances, pending=0)
        self.statistics = Statistics()

    def executes(self, count, seconds, rows=1):
        for _ in range(count):
            self.statistics.executed(rows, 0, int(seconds * 1e9), 0)
            for _ in range(rows):
                self.statistics.succeeded(1, 0, 0, 0, int(seconds * 1e9), 0)


class Machine:
    """A server with models, and a clock that the test moves."""

    def __init__(self, *versions):
        self.now_s = 100.0
        server = SimpleNamespace(models=SimpleNamespace(versions=lambda: versions))
        self._read = Utilization(server, 0.1, lambda: self.now_s)
        self._read({})

    def after(self, seconds, **named):
        self.now_s += seconds
        return self._read(named)["application_utilization"]


def test_an_idle_server_uses_nothing():
    assert Machine(Version("a")).after(1) == 0


def test_it_is_the_part_of_the_time_in_which_instances_execute():
    version = Version("a", instances=2)
    machine = Machine(version)

    version.executes(10, 0.05)

    assert machine.after(1) == pytest.approx(0.25)


def test_it_grows_in_proportion_to_the_requests():
    version = Version("a")
    machine = Machine(version)
    found = []
    for count in (10, 20, 40):
        machine.after(2)  # what was before is forgotten
        version.executes(count, 0.02)
        found.append(machine.after(2) / count)

    assert found == pytest.approx([found[0]] * 3)


def test_the_busiest_model_counts():
    calm, busy = Version("calm"), Version("busy")
    machine = Machine(calm, busy)

    calm.executes(1, 0.1)
    busy.executes(7, 0.1)

    assert machine.after(1) == pytest.approx(0.7)


def test_a_part_of_a_batch_counts_in_part():
    version = Version("a", most_rows=8)
    machine = Machine(version)

    version.executes(10, 0.1, rows=2)

    assert machine.after(1) == pytest.approx(0.25)


def test_rows_of_one_request_count_whole_if_requests_are_not_joined():
    version = Version("a", most_rows=8, batching=False)
    machine = Machine(version)

    version.executes(5, 0.1, rows=2)

    assert machine.after(1) == pytest.approx(0.5)


def test_a_wait_above_the_bound_is_more_than_full_use():
    version = Version("a")
    machine = Machine(version)

    version.executes(10, 0.05)
    version.chain.pending = 6  # 0.3 s

    assert machine.after(1) == pytest.approx(3)


def test_a_shorter_wait_does_not_count():
    version = Version("a")
    machine = Machine(version)

    version.executes(10, 0.05)
    version.chain.pending = 2  # 0.1 s, and half of the time is used

    assert machine.after(1) == pytest.approx(0.5)


def test_a_memory_for_contexts_that_is_full_is_full_use():
    assert Machine(Version("a")).after(1, kv_cache_utilization=0.9) == 0.9


def test_a_model_that_was_loaded_again_counts_from_then_on():
    version = Version("a")
    machine = Machine(version)
    version.executes(10, 0.05)
    machine.after(1)

    version.statistics = Statistics()

    assert machine.after(0.5) == 0
