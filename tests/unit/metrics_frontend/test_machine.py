"""CPU and memory of the machine."""

import pytest

from frontends.metrics.sources.machine import Machine


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def proc(tmp_path):
    class Proc:
        path = tmp_path

        def ticks(self, busy, idle):
            text = f"cpu  {busy} 0 0 {idle} 0 0 0 0 0 0\ncpu0 1 2 3 4\n"
            (tmp_path / "stat").write_text(text)

    (tmp_path / "meminfo").write_text(
        "MemTotal:  1000 kB\nMemFree: 1 kB\nMemAvailable: 400 kB\nHugePages_Total: 0\n"
    )
    found = Proc()
    found.ticks(100, 100)
    return found


def values(machine):
    return {family.name: family.samples[0].value for family in machine.families()}


def test_utilisation_is_the_busy_share_since_the_last_look(proc):
    clock = Clock()
    machine = Machine(2.0, proc.path, clock)

    proc.ticks(130, 110)
    assert values(machine)["nv_cpu_utilization"] == 0.75
    clock.now = 2.0
    proc.ticks(130, 210)
    assert values(machine)["nv_cpu_utilization"] == 0.0


def test_it_looks_once_in_an_interval(proc):
    clock = Clock()
    machine = Machine(2.0, proc.path, clock)
    proc.ticks(110, 100)
    assert values(machine)["nv_cpu_utilization"] == 1.0

    proc.ticks(110, 200)
    clock.now = 1.9
    assert values(machine)["nv_cpu_utilization"] == 1.0


def test_memory_in_use_is_total_minus_available(proc):
    found = values(Machine(2.0, proc.path, Clock()))

    assert found["nv_cpu_memory_total_bytes"] == 1000 * 1024
    assert found["nv_cpu_memory_used_bytes"] == 600 * 1024


def test_without_proc_there_are_no_gauges(tmp_path):
    assert values(Machine(2.0, tmp_path / "absent", Clock())) == {}
