"""Samples of histograms, as Prometheus wants them."""

import math

import pytest

from core.telemetry.families import histogram_samples


@pytest.mark.parametrize(
    ("bounds", "counts"), [((1.0, 2.0), [3, 4, 5]), ((1.0, 2.0, math.inf), [3, 4, 5, 0])]
)
def test_every_histogram_has_one_bucket_for_all(bounds, counts):
    """Also if the configuration names infinity: a second bucket would count twice in sums over workers."""
    found = histogram_samples({"model": "m"}, bounds, counts, 9.0)

    assert [(each.labels.get("le"), each.value, each.suffix) for each in found] == [
        ("1", 3, "_bucket"),
        ("2", 7, "_bucket"),
        ("+Inf", 12, "_bucket"),
        (None, 9.0, "_sum"),
        (None, 12, "_count"),
    ]
