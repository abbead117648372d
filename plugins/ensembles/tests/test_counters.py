"""Counters of ensembles: they go with the version that they count for."""

from types import SimpleNamespace

import core_ensembles
import pytest
from core_ensembles.counters import EnsembleMetrics

from .conftest import ensemble, parsed


@pytest.fixture
def metrics(monkeypatch):
    found = EnsembleMetrics()
    monkeypatch.setitem(core_ensembles._started, 1, found)
    return found


def loaded(metrics):
    """Load the ensemble e, and let a loop and a step of it run once; return its version."""
    _, signature = parsed(ensemble("x FP32[-1] -> z FP32[-1]", "halve x=x -> y=z"))
    metrics.serve(signature)
    metrics.decided(("e", 1, "step[0]"), True)
    metrics.looped(("e", 1, "loop[0]"), 3, True)
    return SimpleNamespace(signature=signature)


def samples(metrics):
    return [len(list(family.samples)) for family in metrics.families()]


def test_the_counts_of_a_version_that_is_gone_are_dropped(metrics):
    version = loaded(metrics)
    metrics.decided(("e", 2, "step[0]"), True)
    assert samples(metrics)[0] == 2 and all(samples(metrics))

    core_ensembles.core_model_changed(version, "unloading", "")
    assert samples(metrics)[0] == 2
    core_ensembles.core_model_changed(version, "gone", "")

    assert samples(metrics) == [1, 0, 0]


def test_a_version_that_has_loaded_again_keeps_its_counts(metrics):
    before, after = loaded(metrics), loaded(metrics)

    core_ensembles.core_model_changed(before, "gone", "")
    assert all(samples(metrics))
    core_ensembles.core_model_changed(after, "gone", "")
    assert not any(samples(metrics))


def test_a_version_that_never_loaded_has_no_counts(metrics):
    core_ensembles.core_model_changed(SimpleNamespace(), "failed", "no such file")

    assert not any(samples(metrics))
