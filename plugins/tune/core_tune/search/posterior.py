"""Posterior: what is known of the limits of all settings, after some were measured.

The queueing model predicts the limit of each. Measurements correct it: a Gaussian process over the logarithm
of measured / predicted says how far, for settings near the measured ones too, and how sure that is. What
slows the whole machine down for a while is a second process, over time; it is no property of the settings.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core_tune.queueing.machine import Array
from core_tune.settings import Settings

_WRONG = 0.3  # standard deviation of the logarithm by which the queueing model is wrong
_REACH = 2.0  # steps in the space of settings over which that changes
_OFFSET = 0.7  # the same for all settings together
_DRIFTS = (0.0, 0.04, 0.1, 0.2)
_MEMORY_S = 45.0
_NOISES = (0.02, 0.04, 0.08)


@dataclass(frozen=True)
class Estimate:
    """A measured limit: its logarithm, the standard deviation of that, and when it was measured."""

    settings: Settings
    log: float
    deviation: float
    at_s: float


@dataclass(frozen=True)
class Known:
    """Logarithms of limits: mean and covariance, in the order of the settings."""

    mean: Array
    covariance: Array

    @property
    def deviation(self) -> Array:
        found: Array = np.sqrt(np.maximum(np.diag(self.covariance), 1e-12))
        return found


def posterior(
    settings: Sequence[Settings], predicted: Array, estimates: Sequence[Estimate]
) -> Known:
    """Return what is known of all settings.

    predicted   logarithms of their limits, by the queueing model
    estimates   of some of these settings
    """
    places = np.array([each.place for each in settings])
    prior = _covariance(places, places)
    if not estimates:
        return Known(predicted, prior)
    index = {each: number for number, each in enumerate(settings)}
    at = np.array([index[each.settings] for each in estimates])
    wrong = np.array([each.log for each in estimates]) - predicted[at]
    times = np.array([each.at_s for each in estimates])
    own = np.array([each.deviation for each in estimates])
    apart = np.abs(times[:, None] - times[None, :])
    best: tuple[float, Array] | None = None
    for drift in _DRIFTS:
        for noise in _NOISES:
            covariance = prior[np.ix_(at, at)] + np.diag(own**2 + noise**2)
            covariance += drift**2 * np.exp(-apart / _MEMORY_S)
            unlikely = _unlikely(covariance, wrong)
            if best is None or unlikely < best[0]:
                best = unlikely, covariance
    assert best is not None
    gain = np.linalg.solve(best[1], prior[at]).T
    return Known(predicted + gain @ wrong, prior - gain @ prior[at])


def _covariance(one: Array, other: Array) -> Array:
    distance = np.sqrt(((one[:, None, :] - other[None, :, :]) ** 2).sum(-1)) / _REACH
    scaled = math.sqrt(3) * distance
    found: Array = _OFFSET**2 + _WRONG**2 * (1 + scaled) * np.exp(-scaled)
    return found


def _unlikely(covariance: Array, wrong: Array) -> float:
    """Return the negative logarithm of the likelihood."""
    sign, determinant = np.linalg.slogdet(covariance)
    if sign <= 0:
        return math.inf
    return float(wrong @ np.linalg.solve(covariance, wrong) + determinant) / 2
