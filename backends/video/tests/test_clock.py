"""Times of frames: they follow the stamps of the source, and never go back."""

from fractions import Fraction
from types import SimpleNamespace

import pytest
from backend_video.clock import Clock

STEP = 40


@pytest.mark.parametrize(
    ("stamps", "expected"),
    [
        ([0, 40, 40, 80, 120, 120, 160], [0, 40, 40, 80, 120, 120, 160]),
        ([0, 80, 40, 120], [0, 80, 80, 120]),
        ([5000, 6000, 7000, 0, 40], [0, 1000, 2000, 2040, 2080]),
        ([0] * 28, [0] * 26 + [40, 80]),
    ],
    ids=["repeated", "out of order", "anew", "still"],
)
def test_milliseconds_of_frames(stamps, expected):
    clock = Clock()

    found = [
        clock.time_of(SimpleNamespace(pts=each, time_base=Fraction(1, 1000)), STEP * 1_000_000)
        for each in stamps
    ]

    assert [each // 1_000_000 for each in found] == expected
    assert found == sorted(set(found))
