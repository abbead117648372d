"""Statistics that know how latencies are spread."""

import logging

import pytest

from core.config import ModelConfig
from core.telemetry.metrics.detailed import (
    AGE_NS,
    BUCKETS,
    FIRST_RESPONSE,
    HISTOGRAMS,
    DetailedStatistics,
    statistics_of,
    warn_of_unknown_families,
)
from core.telemetry.metrics.settings import MetricSettings
from core.telemetry.statistics import Statistics

BOTH = MetricSettings(histograms=True, summaries=True)


class Clock:
    now_ns = 10**12

    def __call__(self):
        return self.now_ns


def config(**buckets):
    found = ModelConfig(name="m")
    for family, bounds in buckets.items():
        control = found.model_metrics.metric_control.add()
        control.metric_identifier.family = family
        control.histogram_options.buckets.extend(bounds)
    return found


def counts(statistics):
    return {
        name: phase.histogram.counts()
        for name, phase in statistics.phases().items()
        if phase.histogram
    }


def test_without_histograms_and_summaries_statistics_are_plain():
    assert type(statistics_of(MetricSettings(), config())) is Statistics


@pytest.mark.parametrize("settings", [BOTH, MetricSettings(histograms=True)])
def test_the_phases_of_a_request_are_counted_in_their_buckets(settings):
    statistics = statistics_of(settings, config())

    statistics.succeeded(2, 30_000_000, 600_000, 50_000, 26_000_000, 700_000)

    assert counts(statistics) == {
        "request": [0, 0, 0, 1, 0, 0],
        "queue": [0, 1, 0, 0, 0, 0],
        "compute_input": [1, 0, 0, 0, 0, 0],
        "compute_infer": [0, 0, 0, 1, 0, 0],
        "compute_output": [0, 0, 1, 0, 0, 0],
    }
    assert (statistics.inference_count, statistics.success.count) == (2, 1)


def test_the_statistics_of_a_request_are_the_same():
    plain, detailed = Statistics(), statistics_of(BOTH, config())

    for each in (plain, detailed):
        each.executed(2, 1, 2, 3)
        each.succeeded(2, 10, 1, 2, 3, 4)
        each.hit(1, 2, 3)
        each.missed(4)
        each.failed("OTHER", 5)
        each.last_inference_ms = 0

    assert detailed.as_dict() == plain.as_dict()


def test_summaries_alone_have_no_histograms():
    statistics = statistics_of(MetricSettings(summaries=True), config())
    statistics.succeeded(1, 10, 1, 2, 3, 4)

    assert counts(statistics) == {}
    assert statistics.first_response is None
    assert [phase.spread.sum_ns for phase in statistics.phases().values()] == [10, 1, 2, 3, 4, 0, 0]


def test_an_answer_of_the_cache_has_a_queue_and_no_execution():
    statistics = statistics_of(BOTH, config())

    statistics.hit(7_000, 2_000, 10_000)
    statistics.missed(9_000)

    assert {name: phase.spread.sum_ns for name, phase in statistics.phases().items()} == {
        "request": 10_000,
        "queue": 2_000,
        "compute_input": 0,
        "compute_infer": 0,
        "compute_output": 0,
        "cache_hit": 7_000,
        "cache_miss": 9_000,
    }


def test_without_streams_the_last_answer_is_the_first():
    statistics = statistics_of(BOTH, config())

    statistics.succeeded(1, 120_000_000, 1, 2, 3, 4)

    assert statistics.first_response.counts() == [0, 1, 0, 0, 0]


def test_with_streams_first_responses_are_observed_separately():
    streams = config()
    streams.model_transaction_policy.decoupled = True
    statistics = statistics_of(BOTH, streams)

    statistics.succeeded(1, 120_000_000, 1, 2, 3, 4)

    assert statistics.first_response.counts() == [0] * 5


@pytest.mark.parametrize("family", BUCKETS)
def test_a_model_chooses_its_buckets(family):
    statistics = statistics_of(BOTH, config(**{family: [1, 2.5]}))

    histograms = {name: phase.histogram for name, phase in statistics.phases().items()}
    found = {name: histograms[phase].bounds for name, phase in HISTOGRAMS.items()}
    found[FIRST_RESPONSE] = statistics.first_response.bounds
    assert found == {**BUCKETS, family: (1.0, 2.5)}


def test_a_family_without_buckets_to_choose_is_named_in_the_log(caplog):
    with caplog.at_level(logging.WARNING, "core"):
        warn_of_unknown_families(config(nv_inference_count=[1], core_inference_batch_size=[3]))

    (record,) = caplog.records
    assert "model 'm': model_metrics has no effect on 'nv_inference_count'" in record.message
    assert "nv_inference_queue_duration_histogram_us" in record.message


class TestLastMinute:
    def spreads(self, clock):
        return statistics_of(MetricSettings(summaries=True), config(), clock)

    def lowest(self, statistics):
        return statistics.phases()["request"].spread.recent()[0]

    def test_a_duration_is_remembered_for_a_minute(self):
        clock = Clock()
        statistics = self.spreads(clock)
        statistics.succeeded(1, 5, 0, 0, 0, 0)

        clock.now_ns += 4 * AGE_NS
        statistics.succeeded(1, 8, 0, 0, 0, 0)
        assert self.lowest(statistics) == 5

        clock.now_ns += AGE_NS
        assert self.lowest(statistics) == 8

    @pytest.mark.parametrize("rest_ns", [5 * AGE_NS, 11 * AGE_NS, 10**6 * AGE_NS])
    def test_a_long_idle_time_discards_everything_at_once(self, rest_ns):
        clock = Clock()
        statistics = self.spreads(clock)
        statistics.succeeded(1, 5, 0, 0, 0, 0)

        clock.now_ns += rest_ns
        assert self.lowest(statistics) == 0

        statistics.succeeded(1, 7, 0, 0, 0, 0)
        clock.now_ns += 4 * AGE_NS
        assert self.lowest(statistics) == 7


def test_durations_of_an_hour_and_more_do_no_harm():
    statistics = DetailedStatistics(True, {"request": (1.0,)}, (1.0,), False)

    statistics.succeeded(1, 2**62, 0, 0, 0, 0)

    assert counts(statistics) == {"request": [0, 1]}
