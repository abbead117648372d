"""A small affine model and its true answers: python -m core_testing affine"""

from pathlib import Path

import numpy as np
import pytest
from core_testing import BackendConformance, Example

from backend_affine import FILE, backend

X = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
WEIGHTS = np.array([[1, 0, 2], [0, 1, 2]], np.float32)


class TestContract(BackendConformance):
    supports = {"batching", "cpu"}

    @pytest.fixture
    def example(self, tmp_path: Path) -> Example:
        np.savez(tmp_path / FILE, weights=WEIGHTS, bias=np.ones(3))
        return Example(backend, tmp_path, inputs={"x": X}, expected={"y": X @ WEIGHTS + 1})
