"""A small engine and its expected answers: python -m core_testing tensorrt

The package tensorrt builds the engine on a GPU. All tests are skipped if either is missing.
"""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest
from core_testing import BackendConformance, Example

from backend_tensorrt import backend
from core.devices.visible import gpus

X = np.arange(12, dtype=np.float32).reshape(4, 3)


def save(path: Path) -> None:
    """Write an engine of y = x + x, for 1 to 8 rows."""
    trt = importlib.import_module("tensorrt")
    builder = trt.Builder(trt.Logger(trt.Logger.ERROR))
    network = builder.create_network(0)
    x = network.add_input("x", trt.float32, (-1, X.shape[1]))
    y = network.add_elementwise(x, x, trt.ElementWiseOperation.SUM).get_output(0)
    y.name = "y"
    network.mark_output(y)
    profile = builder.create_optimization_profile()
    profile.set_shape("x", *((rows, X.shape[1]) for rows in (1, 4, 8)))
    config = builder.create_builder_config()
    config.add_optimization_profile(profile)
    path.write_bytes(bytes(builder.build_serialized_network(network, config)))


class TestTensorRt(BackendConformance):
    supports = {"batching", "gpu"}

    @pytest.fixture
    def example(self, tmp_path: Path) -> Example:
        if not gpus():
            pytest.skip("this process sees no GPU")
        pytest.importorskip("tensorrt", reason="the engine is built by the package tensorrt")
        save(tmp_path / "model.plan")
        return Example(
            backend,
            tmp_path,
            inputs={"x": X},
            expected={"y": 2 * X},
            config='platform: "tensorrt_plan" max_batch_size: 8',
        )
