"""What the ratios of `make bench-fairness` show wrong."""

import pytest

from benchmarks.fairness import ARRIVAL, FAIR, problems


@pytest.mark.parametrize(
    ("arrival", "fair", "texts"),
    [
        (4.3, 1.2, []),
        (2.1, 2.0, []),
        (4.3, 2.1, ["fair shares: 2.10 times that alone, expected 2 at most"]),
        (
            2.0,
            1.0,
            [
                "in order of arrival: 2.00 times that alone, expected more than 2: the flood was no flood"
            ],
        ),
    ],
)
def test_fair_shares_bound_what_a_real_flood_costs(arrival, fair, texts):
    assert problems({ARRIVAL: arrival, FAIR: fair}) == texts
