"""RecentGrowth: growth of counters over the last seconds."""

from frontends.shared.recent_growth import RecentGrowth


def test_the_first_reading_has_no_growth():
    assert RecentGrowth(2).add(100, {"a": 5}) == (0, {})


def test_growth_is_counted_from_the_youngest_reading_that_is_old_enough():
    growth = RecentGrowth(2)
    for second in range(6):
        found = growth.add(100 + second, {"a": 10 * second})

    assert found == (2, {"a": 20})


def test_a_reading_that_is_too_young_is_better_than_none():
    growth = RecentGrowth(2)
    growth.add(100, {"a": 5})

    assert growth.add(100.5, {"a": 6}) == (0.5, {"a": 1})


def test_readings_far_apart_have_the_time_between_them():
    growth = RecentGrowth(2)
    growth.add(100, {"a": 5})
    growth.add(200, {"a": 6})

    assert growth.add(500, {"a": 16}) == (300, {"a": 10})


def test_a_new_counter_has_grown_from_0_and_one_that_began_again_has_not():
    growth = RecentGrowth(2)
    growth.add(100, {"again": 5})

    assert growth.add(101, {"again": 1, "new": 3}) == (1, {"again": 0, "new": 3})


def test_two_readings_at_one_time_have_no_growth():
    growth = RecentGrowth(2)
    growth.add(100, {"a": 5})

    assert growth.add(100, {"a": 6}) == (0, {})
