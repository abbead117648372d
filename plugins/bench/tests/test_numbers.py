"""The histogram against numpy, and intervals against what they promise."""

import random

import numpy as np
import pytest
from core_bench.measure.spread import interval, ratio
from core_bench.native.engine import Histogram
from core_bench.report.numbers import count_text, time_text

QUANTILES = (0.0, 0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 1.0)


@pytest.mark.parametrize("seed", range(5))
def test_quantiles_are_exact_to_0_4_percent(seed):
    source = np.random.default_rng(seed)
    values = np.exp(source.uniform(0, 28, 5000)).astype(np.int64)
    made = Histogram()
    for each in values.tolist():
        made.add(each)

    for quantile in QUANTILES:
        exact = np.quantile(values, quantile, method="inverted_cdf")
        assert made.quantile(quantile) == pytest.approx(exact, rel=0.0040, abs=1)
    assert made.count == 5000
    assert made.mean == pytest.approx(values.mean())
    assert (made.low, made.high) == (values.min(), values.max())


def test_small_values_are_exact():
    for value in range(256):
        made = Histogram()
        made.add(value)
        assert made.quantile(0.5) == value


def test_buckets_hold_all_values_in_order():
    made = Histogram()
    for value in (0, 5, 5, 10**6, 10**10, 10**15):
        made.add(value)

    begins, counts = zip(*made.buckets(), strict=True)

    assert list(begins) == sorted(begins)
    assert counts == (1, 2, 1, 1, 1)
    for value, begin in zip((0, 5, 10**6, 10**10), begins, strict=False):
        assert begin <= value < begin * 1.01 + 1


def test_merging_is_adding_all_values():
    parts, whole = [Histogram(), Histogram()], Histogram()
    for value in range(1, 20_000, 7):
        parts[value % 2].add(value)
        whole.add(value)

    parts[0].merge(parts[1])

    assert parts[0].buckets() == whole.buckets()
    assert (parts[0].mean, parts[0].low, parts[0].high) == (whole.mean, whole.low, whole.high)


def test_a_histogram_without_values_and_a_wrong_quantile():
    assert Histogram().quantile(0.5) == Histogram().low == Histogram().mean == 0
    with pytest.raises(ValueError, match="between 0 and 1"):
        Histogram().quantile(1.5)


@pytest.mark.parametrize(
    ("count", "bounds", "coverage"),
    [(1, (0, 0), 0.0), (2, (0, 1), 0.5), (6, (0, 5), 0.96875), (9, (1, 7), 0.9609375)],
)  # fmt: skip
def test_bounds_are_order_statistics(count, bounds, coverage):
    found = interval(list(map(float, range(count))))

    assert (found.low, found.high) == bounds
    assert found.coverage == coverage


def test_bounds_enclose_the_true_median_as_often_as_they_say():
    source = random.Random(7)
    hits = 0
    for _ in range(2000):
        found = interval([source.expovariate(1) for _ in range(6)])
        hits += found.low <= 0.6931 <= found.high

    assert hits / 2000 == pytest.approx(0.96875, abs=0.012)


def test_ratios_are_those_of_rounds_side_by_side():
    # Both slow down together: the ratio stays.
    found = ratio([10.0, 20.0, 40.0], [5.0, 10.0, 20.0])

    assert (found.median, found.low, found.high) == (2.0, 2.0, 2.0)
    assert interval([]) is ratio([], []) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (time_text(8.12e-7), "0.81 µs"),
        (time_text(9.996e-4), "1.00 ms"),
        (time_text(0.0421), "42.1 ms"),
        (time_text(73.2), "73.2 s"),
        (count_text(123456), "123,500"),
        (count_text(9.996), "10.0"),
        (count_text(0), "0.00"),
    ],
)
def test_numbers_have_three_or_four_digits(text, expected):
    assert text == expected
