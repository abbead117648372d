"""The metric sources of a server with the plugin."""

import asyncio
import shutil
import time

import core_disk_metrics
import pytest

from core import plugins
from core.control.metrics.watch import Watch
from core.options import parse


@pytest.fixture(autouse=True)
def plugin():
    plugins.hooks().register(core_disk_metrics, "disk_metrics")
    yield
    plugins.hooks().unregister(core_disk_metrics)


@pytest.fixture
def watch():
    made = []

    def make(*flags):
        options = parse(["--model-repository=/m", *flags], plugins.flags())
        made.append(Watch(options))
        made[-1].start(asyncio.get_running_loop())
        return made[-1]

    yield make
    for each in made:
        each.stop()


def samples(watch):
    return [
        sample
        for family in watch.families()
        if family.name == "disk_free_bytes"
        for sample in family.samples
    ]


async def test_a_scrape_has_the_free_space_of_each_disk(watch, tmp_path):
    found = watch(f"--disk={tmp_path}", "--disk=/")

    end_s = time.monotonic() + 30
    while not samples(found) and time.monotonic() < end_s:
        await asyncio.sleep(0.01)

    paths = {sample.labels["path"]: sample.value for sample in samples(found)}
    assert set(paths) == {str(tmp_path), "/"}
    assert 0 <= paths["/"] <= shutil.disk_usage("/").total


async def test_without_the_option_there_is_no_source(watch):
    assert "disk_free_bytes" not in [family.name for family in watch().families()]
