"""The contract that every backend keeps."""

import numpy as np
import onnx
import pytest
from backend_onnx import backend
from onnx import TensorProto

from core.testing import BackendConformance, Example

X = np.arange(12, dtype=np.float32).reshape(4, 3)
INDEX = np.array([[0], [2], [1], [-1]], np.int64)
CONFIG = 'backend: "onnxruntime" max_batch_size: 8'


class TestOnnx(BackendConformance):
    supports = {"batching", "cpu", "dynamic_shape", "empty_batch", "strings"}

    @pytest.fixture
    def example(self, tmp_path, graph):
        """y = 2x, picked = the element of each row that index says; out of range makes it raise."""
        model = graph(
            [
                ("Add", ["x", "x"], ["y"], {}),
                ("GatherElements", ["x", "index"], ["picked"], {"axis": 1}),
            ],
            {"x": (TensorProto.FLOAT, ["n", 3]), "index": (TensorProto.INT64, ["n", 1])},
            {"y": (TensorProto.FLOAT, ["n", 3]), "picked": (TensorProto.FLOAT, ["n", 1])},
        )
        onnx.save(model, tmp_path / "model.onnx")
        return Example(
            backend,
            tmp_path,
            inputs={"x": X, "index": INDEX},
            expected={"y": 2 * X, "picked": np.take_along_axis(X, INDEX, 1)},
            config=CONFIG,
            failing={"x": X, "index": INDEX + 100},
        )

    @pytest.fixture
    def strings_example(self, tmp_path, identity):
        onnx.save(identity(TensorProto.STRING, ["n", 2]), tmp_path / "model.onnx")
        text = np.array([[b"", "ä€𝄞".encode()], [b"two words", b"a\0b"]], object)
        return Example(backend, tmp_path, inputs={"x": text}, expected={"y": text}, config=CONFIG)

    @pytest.fixture
    def other_shapes(self, tmp_path, identity):
        onnx.save(identity(TensorProto.INT32, ["n", "a", "b"]), tmp_path / "model.onnx")
        arrays = [np.full(shape, 5, np.int32) for shape in ((1, 2, 3), (2, 0, 1), (3, 4, 1))]
        return [
            Example(backend, tmp_path, inputs={"x": each}, expected={"y": each}, config=CONFIG)
            for each in arrays
        ]
