"""The search of bench.py for the number of videos that one core carries."""

from types import SimpleNamespace

import pytest


@pytest.mark.parametrize(
    ("expected", "most", "tried"),
    [
        (4.2, 5, [3, 4, 5, 6]),
        (4.2, 2, [3, 2]),
        (4.2, 0, [3, 2, 1]),
        (0.3, 1, [1, 2]),
        (0.3, 0, [1]),
    ],
)
def test_no_number_of_videos_is_measured_twice(expected, most, tried):
    import bench

    asked = []

    def trial(who, streams):
        asked.append(streams)
        return SimpleNamespace(share=1.0 if streams <= most else 0.5)

    assert bench.carried(SimpleNamespace(trial=trial), "server", expected) == most
    assert asked == tried
