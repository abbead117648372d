"""Metric sources of plugins."""

import asyncio
from contextlib import contextmanager

import pytest

import core
from core import plugins
from core.control.metrics.watch import Watch
from core.errors import CoreError
from core.options import Options
from core.telemetry.families import Sample
from core.telemetry.metrics.catalog import Entry
from core.telemetry.metrics.source import MetricSource
from core.telemetry.registry import registry
from frontends.pages import metrics_page


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
        loop = asyncio.new_event_loop()
        watch.start(loop)
        assert disk.started == 1
        watch.stop()
        loop.close()
        assert disk.started == 0

    def test_a_source_that_fails_is_left_out_with_an_error(self, disk, caplog):
        watch = Watch(Options.defaults())
        disk.values = None
        disk.stop = lambda: 1 / 0

        assert "disk_free_bytes" not in names(watch)
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
