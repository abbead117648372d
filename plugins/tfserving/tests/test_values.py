"""Outputs as JSON: elements of every integer type of C are written."""

import json

import numpy as np
import pytest
from frontend_tfserving.rest.values import values_of, write_json

from core.tensor import Tensor


@pytest.mark.parametrize("code", "bBhHiIlLqQ?")
def test_elements_of_each_integer_type_are_written(code):
    """ONNX Runtime gives `long long`, whose dtype equals int64, but is another type."""
    rows = np.array([[0], [1]], np.dtype(code))

    columns = values_of(Tensor.of("label", rows))
    document = {"rows": [{"label": each} for each in columns], "flat": list(columns[:, 0])}

    assert json.loads(write_json(document)) == {
        "rows": [{"label": [0]}, {"label": [1]}],
        "flat": [0, 1],
    }
