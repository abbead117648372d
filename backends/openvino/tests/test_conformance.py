"""The contract that every backend keeps."""

import numpy as np
import openvino as ov
import openvino.opset13 as op
import pytest
from backend_openvino import backend

from core.testing import BackendConformance, Example

X = np.arange(12, dtype=np.float32).reshape(4, 3)
INDEX = np.array([[0], [2], [1], [0]], np.int64)
CONFIG = 'backend: "openvino" max_batch_size: 8'


class TestOpenVino(BackendConformance):
    supports = {"batching", "cpu", "dynamic_shape", "empty_batch", "strings"}

    @pytest.fixture
    def example(self, tmp_path, model_of):
        """y = 2x, picked = the element of each row that index says; other lengths than w's raise."""
        weights = np.arange(3, dtype=np.float32)
        model = model_of(
            lambda x, index: {
                "y": op.add(op.add(x, x), weights),
                "picked": op.gather_elements(x, index, 1),
            },
            x=(ov.Type.f32, (-1, -1)),
            index=(ov.Type.i64, (-1, 1)),
        )
        ov.save_model(model, tmp_path / "model.xml", compress_to_fp16=False)
        return Example(
            backend,
            tmp_path,
            inputs={"x": X, "index": INDEX},
            expected={
                "y": 2 * X + np.arange(3, dtype=np.float32),
                "picked": np.take_along_axis(X, INDEX, 1),
            },
            config=CONFIG,
            failing={"x": np.ones((4, 5), np.float32), "index": INDEX},
        )

    @pytest.fixture
    def strings_example(self, tmp_path, same):
        ov.save_model(same(ov.Type.string, (-1, 2)), tmp_path / "model.xml")
        text = np.array([[b"", "ä€𝄞".encode()], [b"two words", b"a\0b"]], object)
        return Example(backend, tmp_path, inputs={"x": text}, expected={"y": text}, config=CONFIG)

    @pytest.fixture
    def other_shapes(self, tmp_path, doubled):
        ov.save_model(doubled(ov.Type.i32, (-1, -1, -1)), tmp_path / "model.xml")
        arrays = [np.full(shape, 5, np.int32) for shape in ((1, 2, 3), (2, 0, 1), (3, 4, 1))]
        return [
            Example(backend, tmp_path, inputs={"x": each}, expected={"y": 2 * each}, config=CONFIG)
            for each in arrays
        ]
