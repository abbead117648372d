"""The assignment is that of scipy, also among equally good ones."""

import numpy as np
import pytest
from backend_tracker.native.streams import assign
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

linear_sum_assignment = pytest.importorskip("scipy.optimize").linear_sum_assignment


def expected(similarity):
    """Return the column of each row, -1 for none."""
    found = np.full(len(similarity), -1)
    rows, columns = linear_sum_assignment(similarity, maximize=True)
    found[rows] = columns
    return found.tolist()


SHAPES = array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=12)


@given(arrays(np.float32, SHAPES, elements=st.floats(0, 1, width=32)))
def test_any_similarities_are_assigned_as_by_scipy(similarity):
    assert assign(similarity).tolist() == expected(similarity)


@given(arrays(np.float32, SHAPES, elements=st.sampled_from([0, 0.25, 0.5, 1])))
def test_ties_are_broken_as_by_scipy(similarity):
    assert assign(similarity).tolist() == expected(similarity)


@pytest.mark.parametrize("shape", [(1, 200), (200, 1), (150, 150), (80, 190)])
def test_large_matrices_are_assigned_as_by_scipy(shape):
    random = np.random.default_rng(3)
    overlaps = random.random(shape, np.float32)
    overlaps[random.random(shape) < 0.9] = 0  # most boxes do not touch

    assert assign(overlaps).tolist() == expected(overlaps)
