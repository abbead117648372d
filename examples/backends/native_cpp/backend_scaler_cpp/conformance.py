"""A small model and its expected answers: python -m core_testing scaler_cpp"""

import json

import numpy as np
import pytest
from core_testing import BackendConformance, Example

from backend_scaler_cpp import backend

X = np.arange(12, dtype=np.float32).reshape(4, 3)
MEAN, DEVIATION = np.float32([1, 0, -2]), np.float32([2, 1, 0.5])


class TestContract(BackendConformance):
    supports = {"batching", "cpu", "native"}

    @pytest.fixture
    def example(self, tmp_path):
        columns = {"mean": MEAN.tolist(), "deviation": DEVIATION.tolist()}
        (tmp_path / "scaler.json").write_text(json.dumps(columns))
        return Example(backend, tmp_path, inputs={"x": X}, expected={"y": (X - MEAN) / DEVIATION})
