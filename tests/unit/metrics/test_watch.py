"""Metric sources: the event loop, the process, and those of plugins."""

import asyncio
import os
from contextlib import contextmanager

import pytest

import core
from core import plugins
from core.control.metrics.watch import Watch
from core.errors import CoreError
from core.options import Options
from core.system.platform import PORTABLE
from core.telemetry.families import Sample
from core.telemetry.metrics.catalog import Entry
from core.telemetry.metrics.lag import BUCKETS_S, EVERY_S, LoopLag
from core.telemetry.metrics.process import Process
from core.telemetry.metrics.source import MetricSource
from core.telemetry.registry import registry
from frontends.pages import metrics_page


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
        watch = Watch(Options.defaults(), worker=3)

        labels = {
            family.name: dict(family.samples[0].labels)
            for family in watch.families()
            if family.name.startswith("core_process_")
        }

        assert len(labels) >= 3
        assert all(each == {"worker": "3"} for each in labels.values())


def test_the_machine_can_be_turned_off():
    watch = Watch(Options.defaults(allow_cpu_metrics=False))

    assert not [each.name for each in watch.families() if each.name.startswith("nv_cpu")]


class Disk(MetricSource):
    """The plugin and source of a test."""

    catalog = {"Disks": [Entry("disk_free_bytes", "gauge", "Free bytes", ("path",))]}

    def __init__(self):
        self.started = 0
        self.values = [Sample({"path": "/"}, 7)]

    @core.hookimpl
    def core_open_metric_source(self, options):
        return self if options.allow_metrics else None

    def start(self, loop):
        self.started += 1

    def stop(self):
        self.started -= 1

    def families(self):
        return [self.catalog["Disks"][0].family(self.values)]

    def gpu_uuid(self, number):
        return {1: "GPU-b"}.get(number)


@contextmanager
def registered(plugin):
    plugins.hooks().register(plugin, "disk")
    try:
        yield plugin
    finally:
        plugins.hooks().unregister(plugin)


@pytest.fixture
def disk():
    with registered(Disk()) as plugin:
        yield plugin


def names(watch):
    return [each.name for each in watch.families()]


class TestPlugins:
    def test_a_source_of_a_plugin_is_read_at_each_scrape(self, disk):
        watch = Watch(Options.defaults())

        (family,) = [each for each in watch.families() if each.name == "disk_free_bytes"]

        assert (family.kind, family.help, family.samples) == ("gauge", "Free bytes", disk.values)

    def test_it_gets_the_options_of_the_server(self, disk):
        assert "disk_free_bytes" not in names(Watch(Options.defaults(allow_metrics=False)))

    def test_it_measures_while_metrics_are_served(self, disk):
        watch = Watch(Options.defaults())

        assert disk.started == 0
        watch.start(Loop())
        assert disk.started == 1
        watch.stop()
        assert disk.started == 0

    @pytest.mark.skipif(PORTABLE, reason="metrics of the machine are of /proc")
    def test_a_source_that_fails_is_left_out_with_an_error(self, disk, caplog):
        watch = Watch(Options.defaults())
        disk.values = None
        disk.stop = lambda: 1 / 0

        assert "core_process_threads" in names(watch)
        watch.stop()

        assert "metrics of plugin 'disk' are left out: TypeError" in caplog.text
        assert "metrics of plugin 'disk' cannot be stopped" in caplog.text

    def test_a_family_that_is_not_in_its_catalog_is_left_out(self, disk, caplog):
        watch = Watch(Options.defaults())
        disk.families = lambda: [Entry("disk_used_bytes", "gauge", "Used").family()]

        assert not [name for name in names(watch) if name.startswith("disk")]
        assert "metric family 'disk_used_bytes' of plugin 'disk' is left out" in caplog.text

    def test_a_family_of_core_cannot_be_taken(self, disk, monkeypatch):
        monkeypatch.setattr(Disk, "catalog", {"Mine": [Entry("core_workers", "gauge", "Mine")]})

        with pytest.raises(CoreError, match="'core_workers' of plugin 'disk' exists already"):
            Watch(Options.defaults())

    def test_a_model_cannot_take_a_family_of_a_plugin(self, disk):
        Watch(Options.defaults())

        with pytest.raises(CoreError, match="'disk_free_bytes' cannot be the name"):
            registry.family("disk_free_bytes", "Mine", "gauge")

    def test_a_hook_result_of_another_type_is_refused(self):
        disk = Disk()
        disk.core_open_metric_source = core.hookimpl(lambda: 7)

        with registered(disk), pytest.raises(CoreError, match="'disk' made a int, not a core"):
            Watch(Options.defaults())

    def test_it_is_in_the_tables_of_the_page(self, disk):
        found = metrics_page("### Requests\n")

        row = "| `disk_free_bytes` | gauge | `path` | always | Free bytes |"
        assert "### Disks\n\n| metric | kind |" in found and row in found
