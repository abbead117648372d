"""Several rounds become one figure."""

import pytest

from benchmarks import spread


def test_the_median_is_the_middle_round():
    assert spread.median([3.0, 1.0, 100.0]) == 3.0


def test_the_median_of_two_rounds_is_between_them():
    assert spread.median([1.0, 2.0]) == 1.5


def test_the_spread_is_the_range_of_the_rounds_over_the_median():
    assert spread.spread([90.0, 100.0, 110.0]) == pytest.approx(0.2)


def test_one_round_has_no_spread():
    assert spread.spread([7.0]) == 0


def test_rounds_that_are_all_zero_have_no_spread():
    assert spread.spread([0.0, 0.0]) == 0


def test_a_ratio_compares_rounds_that_saw_the_same_machine():
    # The machine was twice as slow in the second round; the ratio of medians would be 1.5 / 0.75.
    assert spread.ratio([2.0, 1.0], [1.0, 0.5]) == 2.0


def test_a_slow_round_of_both_sides_does_not_change_the_ratio():
    assert spread.ratio([3.0, 30.0, 3.0], [1.0, 10.0, 1.0]) == 3.0


def test_the_ratio_to_a_server_without_requests_is_none():
    assert spread.ratio([1.0], [0.0]) is None
    assert spread.ratio([1.0], []) is None


@pytest.mark.parametrize(
    ("percent", "expected"), [(50, 2.0), (75, 3.0), (99, 4.0), (100, 4.0), (0, 1.0)]
)
def test_a_percentile_is_one_of_the_values(percent, expected):
    assert spread.percentile([4.0, 2.0, 1.0, 3.0], percent) == expected


def test_no_values_have_percentile_0():
    assert spread.percentile([], 99) == 0
