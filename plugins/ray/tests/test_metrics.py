"""Counters and gauges of a server become those of Ray. These tests need no Ray."""

import pytest
from core_ray.metrics import RayMetrics

from core.telemetry.families import Family, Sample


class Recorded:
    """A metric of Ray: its values by their tags."""

    made: dict = {}

    def __init__(self, name, description, tag_keys):
        self.tag_keys, self.values = tag_keys, {}
        self.made[name] = self

    def set(self, value, tags):
        self._check(tags)
        self.values[tuple(tags.values())] = value

    def inc(self, value, tags):
        self._check(tags)
        assert value > 0
        key = tuple(tags.values())
        self.values[key] = self.values.get(key, 0.0) + value

    def _check(self, tags):
        assert tuple(tags) == self.tag_keys
        assert all(isinstance(each, str) for each in tags.values())


@pytest.fixture
def metrics():
    Recorded.made = {}
    return RayMetrics(Recorded, Recorded)


def family(kind, **values):
    samples = [Sample({"model": model, "version": "1"}, value) for model, value in values.items()]
    return Family("found", kind, "Help", samples)


def found():
    return Recorded.made["found"].values


def test_a_gauge_has_the_last_value(metrics):
    metrics.write([family("gauge", a=3, b=1)])
    metrics.write([family("gauge", a=2, b=1)])

    assert found() == {("a", "1"): 2.0, ("b", "1"): 1.0}


def test_a_gauge_of_a_model_that_has_gone_is_zero(metrics):
    metrics.write([family("gauge", a=3, b=1)])
    metrics.write([family("gauge", b=1)])
    metrics.write([family("gauge")])

    assert found() == {("a", "1"): 0.0, ("b", "1"): 0.0}


def test_a_counter_grows_by_what_has_come_since(metrics):
    metrics.write([family("counter", a=3)])
    metrics.write([family("counter", a=3)])
    metrics.write([family("counter", a=5)])

    assert found() == {("a", "1"): 5.0}


def test_a_counter_that_begins_anew_grows_on(metrics):
    metrics.write([family("counter", a=5)])
    metrics.write([family("counter", a=2)])

    assert found() == {("a", "1"): 7.0}


def test_tags_that_serve_adds_itself_are_left_to_it(metrics):
    samples = [Sample({"replica": "r", "model": "a"}, 1)]

    metrics.write([Family("found", "gauge", "Help", samples)])

    assert found() == {("a",): 1.0}


def test_histograms_and_families_without_samples_are_left_out(metrics):
    metrics.write([family("histogram", a=1), Family("empty", "gauge", "Help", [])])

    assert Recorded.made == {}
