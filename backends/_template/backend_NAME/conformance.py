"""A small model and its expected answers, for the contract of every backend: python -m core_testing NAME"""

from pathlib import Path

import numpy as np
import pytest
from core_testing import BackendConformance, Example

from backend_NAME import FILE, backend

X = np.array([[1, 2], [3, 4]], np.float32)


class TestContract(BackendConformance):
    supports = {"batching", "cpu"}

    @pytest.fixture
    def example(self, tmp_path: Path) -> Example:
        (tmp_path / FILE).write_text('{"factor": 3}')
        return Example(backend, tmp_path, inputs={"x": X}, expected={"y": X * 3})
