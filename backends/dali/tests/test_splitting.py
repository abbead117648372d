"""Responses of outputs whose samples are split along their outer dimension, without DALI."""

from types import SimpleNamespace

import numpy as np
import pytest
from backend_dali.instance import DaliInstance

from core.errors import CoreError


@pytest.fixture
def joined():
    """joined(samples): the array of a response for an output that is split."""
    instance = object.__new__(DaliInstance)
    instance.model = SimpleNamespace(name="m", settings=SimpleNamespace(split=("y",)))
    return lambda samples: instance._joined("y", samples)


@pytest.mark.parametrize(
    ("samples", "found"),
    [
        (np.array([[1, 2], [3, 4]]), [[1], [2], [3], [4]]),
        ([np.array([1]), np.array([2, 3])], [[1], [2], [3]]),
        (np.array([[[1, 2]], [[3, 4]]]), [[1, 2], [3, 4]]),
    ],
)
def test_each_element_is_a_row(joined, samples, found):
    assert joined(samples).tolist() == found


def test_samples_without_dims_are_an_error(joined):
    with pytest.raises(CoreError, match="samples of output 'y' have no dims"):
        joined(np.array([1.0, 2.0]))
