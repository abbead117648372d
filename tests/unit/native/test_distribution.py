"""Histograms and spreads of durations, compared with plain Python and numpy."""

import math
from bisect import bisect_left

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.native.distribution import Histogram, QuantileSketch, middle_of
from core.telemetry.families import Summary

DURATIONS = st.lists(st.integers(0, 10**12), min_size=1, max_size=200)
BOUNDS = st.lists(st.floats(0, 1e9), unique=True, max_size=20).map(sorted)


class TestHistogram:
    @given(BOUNDS, DURATIONS)
    def test_a_duration_is_in_the_first_bucket_whose_bound_is_not_below_it(self, bounds, durations):
        histogram = Histogram(bounds, 1000)
        expected = [0] * (len(bounds) + 1)
        for ns in durations:
            histogram.observe(ns)
            expected[bisect_left([bound * 1000 for bound in bounds], ns)] += 1

        assert histogram.counts() == expected
        assert histogram.sum_ns == sum(durations)

    @pytest.mark.parametrize("bound", [math.inf, 1e300, -1e300, -math.inf])
    def test_a_bound_beyond_all_durations_is_one(self, bound):
        histogram = Histogram([bound], 1000)

        histogram.observe(5)

        assert histogram.counts() == ([1, 0] if bound > 0 else [0, 1])

    def test_a_duration_at_a_bound_is_below_it(self):
        histogram = Histogram([0.5, 2], 1_000_000)

        for ns in (500_000, 500_001, 2_000_000):
            histogram.observe(ns)

        assert histogram.counts() == [1, 2, 0]


def quantiles(spread, *wanted):
    """In nanoseconds."""
    lowest, highest, cells = spread.recent()
    summary = Summary({}, wanted, spread.count, 0, lowest, highest, cells)
    return [sample.value * 1000 for sample in summary.samples()[2:]]


class TestSpread:
    @given(DURATIONS, st.floats(0, 1))
    def test_a_quantile_is_exact_within_one_percent(self, durations, quantile):
        spread = QuantileSketch()
        for ns in durations:
            spread.observe(ns)

        (found,) = quantiles(spread, quantile)

        exact = np.quantile(durations, quantile, method="inverted_cdf")
        assert found == pytest.approx(exact, rel=0.01, abs=64)

    @given(st.integers(0, 2**42))
    def test_every_quantile_of_one_duration_is_that_duration(self, ns):
        spread = QuantileSketch()
        spread.observe(ns)

        assert quantiles(spread, 0, 0.5, 1) == pytest.approx([ns] * 3)

    @given(st.integers(0, 2**42 - 1))
    def test_the_middle_of_a_cell_represents_its_durations(self, ns):
        spread = QuantileSketch()
        spread.observe(ns)
        _, _, cells = spread.recent()

        (cell,) = cells

        assert abs(middle_of(cell) - ns) <= max(32, ns / 128)

    def test_durations_above_an_hour_are_counted_in_the_last_cell(self):
        spread = QuantileSketch()
        spread.observe(2**62)

        assert quantiles(spread, 0.5) == pytest.approx([2**62])

    def test_cells_are_numbered_from_short_to_long(self):
        middles = [middle_of(cell) for cell in range(1984)]

        assert middles == sorted(set(middles))

    def test_durations_are_dropped_after_five_turns(self):
        spread = QuantileSketch()
        spread.observe(10)
        for _ in range(4):
            spread.turn()
        spread.observe(1000)

        assert quantiles(spread, 0, 1) == [10, 1000]
        spread.turn()

        assert quantiles(spread, 0, 1) == [1000, 1000]
        assert (spread.count, spread.sum_ns) == (2, 1010)

    def test_a_period_starts_empty_when_it_is_used_again(self):
        spread = QuantileSketch()
        for ns in (100, 200, 300, 400, 500, 600):
            spread.observe(ns)
            spread.turn()

        assert quantiles(spread, 0, 1) == [300, 600]

    def test_without_durations_there_is_no_quantile(self):
        assert math.isnan(quantiles(QuantileSketch(), 0.5)[0])
        assert QuantileSketch().recent() == (0, 0, {})
