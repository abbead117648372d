"""The metrics of the event loop and of the process."""

import asyncio
import os

import pytest

from core.options import Options
from core.system.platform import PORTABLE
from frontends.metrics import sources
from frontends.metrics.sources.loop_lag import BUCKETS_S, EVERY_S, LoopLag
from frontends.metrics.sources.process import Process


class Loop:
    """A loop with a clock of the test, and its only timer."""

    def __init__(self):
        self.now_s = 50.0
        self.timer = None

    def time(self):
        return self.now_s

    def call_at(self, when, function, *arguments):
        self.timer = asyncio.TimerHandle(when, function, arguments, asyncio.new_event_loop())
        return self.timer

    def turn(self, late_s):
        timer, self.timer = self.timer, None
        self.now_s = timer.when() + late_s
        timer._callback(*timer._args)


def buckets(lag):
    (family,) = lag.families()
    return {each.labels["le"]: each.value for each in family.samples if each.suffix == "_bucket"}


class TestLoopLag:
    def test_a_timer_measures_the_lag_of_the_loop(self):
        loop, lag = Loop(), LoopLag()
        lag.start(loop)

        for late_s in (0, 0.0005, 0.05, 3):
            loop.turn(late_s)

        assert buckets(lag) == {
            "0.001": 2, "0.005": 2, "0.025": 2, "0.1": 3, "0.5": 3, "2.5": 3, "+Inf": 4,
        }  # fmt: skip
        (family,) = lag.families()
        assert family.samples[-2].value == pytest.approx(3.0505)

    def test_it_looks_twice_a_second(self):
        loop, lag = Loop(), LoopLag()
        lag.start(loop)
        lag.start(loop)

        loop.turn(0.25)

        assert loop.timer.when() == loop.now_s + EVERY_S

    def test_it_ends(self):
        loop, lag = Loop(), LoopLag()
        lag.start(loop)

        lag.stop()

        assert loop.timer.cancelled()
        assert lag.families() == []

    def test_its_buckets_rise(self):
        assert list(BUCKETS_S) == sorted(BUCKETS_S)


class TestProcess:
    def values(self, *arguments):
        found = Process(0.0, {}, *arguments).families()
        return {
            family.name.removeprefix("core_process_"): family.samples[0].value for family in found
        }

    @pytest.mark.skipif(PORTABLE, reason="metrics of the machine are of /proc")
    def test_this_process_is_measured(self):
        found = self.values()

        assert found["cpu_seconds"] > 0
        assert found["resident_memory_bytes"] > 1 << 20
        assert found["threads"] >= 1
        assert 3 <= found["open_descriptors"] <= found["most_descriptors"]
        assert found["start_time_seconds"] > 1e9

    def test_a_program_name_may_have_any_characters(self, tmp_path):
        (tmp_path / "fd").mkdir()
        (tmp_path / "statm").write_text("10 3 1 1 0 1 0")
        numbers = " ".join(map(str, range(4, 40)))
        (tmp_path / "stat").write_text(f"7 (a) S 9 (b) R {numbers}")

        found = self.values(tmp_path)

        assert found["threads"] == 20
        assert found["resident_memory_bytes"] == 3 * os.sysconf("SC_PAGE_SIZE")

    @pytest.mark.skipif(PORTABLE, reason="metrics of the machine are of /proc")
    def test_without_proc_fewer_values_are_exposed(self, tmp_path):
        assert set(self.values(tmp_path / "absent")) == {
            "cpu_seconds", "most_descriptors", "start_time_seconds",
        }  # fmt: skip

    def test_it_is_read_once_in_an_interval(self, tmp_path):
        now = [0.0]
        process = Process(2.0, clock=lambda: now[0])
        first = process.families()[0].samples[0].value
        sum(range(10**6))

        assert process.families()[0].samples[0].value == first

    def test_a_worker_has_its_number(self):
        source = sources.core_open_metric_source(Options.defaults(), 3)

        labels = {
            family.name: dict(family.samples[0].labels)
            for family in source.families()
            if family.name.startswith("core_process_")
        }

        assert len(labels) >= 3
        assert all(each == {"worker": "3"} for each in labels.values())


def test_the_machine_can_be_turned_off():
    source = sources.core_open_metric_source(Options.defaults(allow_cpu_metrics=False), None)

    assert not [each.name for each in source.families() if each.name.startswith("nv_cpu")]
    assert "Processors and memory of the machine" not in source.catalog


def test_the_sources_start_and_stop_together():
    source, loop = sources.core_open_metric_source(Options.defaults(), None), Loop()

    source.start(loop)
    assert loop.timer is not None
    source.stop()

    assert loop.timer.cancelled()
