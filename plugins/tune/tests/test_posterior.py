"""What is known of settings, by predictions and measurements."""

import numpy as np
import pytest
from core_tune.search.posterior import Estimate, posterior
from core_tune.settings import Settings

MEASURED, OTHER = Settings(1, 4), Settings(2, 4)


@pytest.fixture
def old_numpy(monkeypatch):
    """Return plain tuples from `slogdet`, as NumPy 1.24 does."""
    slogdet = np.linalg.slogdet
    monkeypatch.setattr(np.linalg, "slogdet", lambda matrices: tuple(slogdet(matrices)))


@pytest.mark.usefixtures("old_numpy")
def test_a_measurement_corrects_the_prediction_of_similar_settings():
    estimate = Estimate(MEASURED, log=1.0, deviation=0.01, at_s=0.0)

    known = posterior([MEASURED, OTHER], np.zeros(2), [estimate])

    assert known.mean[0] == pytest.approx(1.0, abs=0.1)
    assert 0.5 < known.mean[1] < known.mean[0]
    assert known.deviation[0] < known.deviation[1]
