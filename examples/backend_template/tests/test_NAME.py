"""The contract of a backend, held against a small model of this one."""

import numpy as np
import pytest
from backend_NAME import backend

from core.testing import BackendConformance, Example

X = np.array([[1, 2], [3, 4]], np.float32)


class TestBackend(BackendConformance):
    supports = {"batching", "cpu"}

    @pytest.fixture
    def example(self, tmp_path):
        (tmp_path / "model.json").write_text('{"factor": 3}')
        return Example(backend, tmp_path, inputs={"x": X}, expected={"y": X * 3})
