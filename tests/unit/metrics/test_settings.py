"""The parsing of --metrics-config."""

import pytest

from core.telemetry.metrics.settings import QUANTILES, MetricSettings


def test_only_counters_are_exposed_by_default():
    assert MetricSettings.of({}) == MetricSettings(True, False, False, QUANTILES)


def test_each_kind_of_latency_has_its_switch():
    found = MetricSettings.of(
        {"counter_latencies": "false", "histogram_latencies": "true", "summary_latencies": "true"}
    )

    assert (found.counters, found.histograms, found.summaries) == (False, True, True)
    assert found.complaints == ()


def test_quantiles_come_with_their_errors():
    found = MetricSettings.of({"summary_quantiles": "0.5:0.05,0.99:0.001,1:0"})

    assert found.quantiles == (0.5, 0.99, 1.0)
    assert found.complaints == ()


@pytest.mark.parametrize("pair", ["0.5", "half:0.1", "0.5:", "1.5:0.1", "-0.1:0", "nan:0", "0.5:2"])
def test_an_invalid_quantile_is_skipped_and_reported(pair):
    found = MetricSettings.of({"summary_quantiles": f"0.9:0.01,{pair}"})

    assert found.quantiles == (0.9,)
    assert found.complaints == (
        f"'{pair}' of --metrics-config=summary_quantiles has no effect: "
        "expected <quantile>:<error>, both between 0 and 1",
    )


def test_without_a_valid_quantile_the_defaults_apply():
    assert MetricSettings.of({"summary_quantiles": "0.5"}).quantiles == QUANTILES


def test_a_repeated_quantile_is_exposed_once():
    assert MetricSettings.of({"summary_quantiles": "0.5:0.1,0.50:0.2"}).quantiles == (0.5,)


def test_a_switch_is_true_or_false():
    found = MetricSettings.of({"summary_latencies": "yes", "unknown": "1"})

    assert not found.summaries
    assert found.complaints == (
        "--metrics-config=unknown has no effect: there is no such setting",
        "--metrics-config=summary_latencies=yes has no effect: expected true or false",
    )
