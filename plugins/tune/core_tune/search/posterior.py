"""Posterior: what is known of the limits of all settings, after some were measured.

The queueing model predicts the limit of each. Measurements correct it: a Gaussian process over the logarithm
of measured / predicted says how far, for settings near the measured ones too, and how sure that is. What
slows the whole machine down for a while is a second process, over time; it is no property of the settings.
A measurement that is much slower than all others let expect may be one of a machine that was disturbed for a
moment: it counts less, until another one of the same settings confirms it.
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
_DISTURBED = 0.1  # of the measurements
_SLOWER = 0.4  # standard deviation of the logarithm by which these are slower


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
    drift = np.exp(-np.abs(times[:, None] - times[None, :]) / _MEMORY_S)
    exact = prior[np.ix_(at, at)] + np.diag([each.deviation**2 for each in estimates])
    first = _likeliest(exact, drift, wrong)
    doubted = exact + np.diag(_SLOWER**2 * _disturbed(first, wrong))
    gain = np.linalg.solve(_likeliest(doubted, drift, wrong), prior[at]).T
    return Known(predicted + gain @ wrong, prior - gain @ prior[at])


def _likeliest(exact: Array, drift: Array, wrong: Array) -> Array:
    """Return the covariance of the measurements with the noise and the drift that explain them best."""
    tried: Array = np.stack(
        [
            exact + noise**2 * np.eye(len(wrong)) + size**2 * drift
            for size in _DRIFTS
            for noise in _NOISES
        ]
    )
    column = np.broadcast_to(wrong[:, None], (len(tried), len(wrong), 1))
    errors = np.linalg.solve(tried, column)[:, :, 0] @ wrong
    unlikely = errors + np.linalg.slogdet(tried)[1]  # a plain tuple before NumPy 1.25
    found: Array = tried[int(np.argmin(unlikely))]
    return found


def _disturbed(covariance: Array, wrong: Array) -> Array:
    """Return for each measurement the probability that its machine was disturbed, by all other ones."""
    inverse = np.linalg.inv(covariance)
    expected = 1 / np.diag(inverse)  # variance, as far as the others say
    ahead = (inverse @ wrong) * expected
    wide = expected + _SLOWER**2
    odds = ahead**2 * (1 / expected - 1 / wide) / 2 - np.log(wide / expected) / 2
    odds += math.log(_DISTURBED / (1 - _DISTURBED))
    found: Array = np.where(ahead < 0, 1 / (1 + np.exp(-np.clip(odds, -50, 50))), 0.0)
    return found


def _covariance(one: Array, other: Array) -> Array:
    distance = np.sqrt(((one[:, None, :] - other[None, :, :]) ** 2).sum(-1)) / _REACH
    scaled = math.sqrt(3) * distance
    found: Array = _OFFSET**2 + _WRONG**2 * (1 + scaled) * np.exp(-scaled)
    return found
