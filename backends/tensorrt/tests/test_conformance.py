"""The contract of backends, on a fake GPU."""

import numpy as np
import pytest
from backend_tensorrt import backend
from core_testing import BackendConformance, Example

X = np.arange(12, dtype=np.float32).reshape(4, 3)


class TestTensorRt(BackendConformance):
    supports = {"batching"}

    @pytest.fixture
    def example(self, tmp_path, twice):
        (tmp_path / "model.plan").write_bytes(b"engine")
        return Example(
            backend,
            tmp_path,
            inputs={"x": X},
            expected={"y": 2 * X},
            config='platform: "tensorrt_plan" max_batch_size: 8',
        )
