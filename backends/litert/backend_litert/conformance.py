"""Small LiteRT models and their expected answers: python -m core_testing litert"""

from pathlib import Path

import numpy as np
import pytest
from core_testing import BackendConformance, Example

from backend_litert import backend
from backend_litert.small_model import GraphWriter

X = np.arange(12, dtype=np.float32).reshape(4, 3)
INDEX = np.array([[0], [2], [1], [0]], np.int64)
WEIGHTS = np.arange(3, dtype=np.float32)
CONFIG = 'backend: "litert" max_batch_size: 8'
STATEFUL = """
backend: "litert" max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ 3 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 3 ] } ]
sequence_batching {
  state { input_name: "before" output_name: "after" data_type: TYPE_FP32 dims: [ 3 ] }
}
"""


class TestLiteRt(BackendConformance):
    supports = {"batching", "cpu", "dynamic_shape", "state", "strings"}

    @pytest.fixture
    def example(self, tmp_path: Path) -> Example:
        """y = 2x + WEIGHTS, which are 3 constants; picked = x[row, index[row]].

        A row of another length fails when it runs.
        """
        graph = GraphWriter()
        x, index = graph.input("x", "float32", (-1, -1)), graph.input("index", "int64", (-1, 1))
        weights = graph.constant("weights", WEIGHTS)
        graph.output(graph.add(graph.add(x, x, "twice"), weights, "y"))
        graph.output(graph.gather_rows(x, index, "picked"))
        return Example(
            backend,
            _saved(graph, tmp_path),
            inputs={"x": X, "index": INDEX},
            expected={"y": 2 * X + WEIGHTS, "picked": np.take_along_axis(X, INDEX, 1)},
            config=CONFIG,
            failing={"x": np.ones((4, 5), np.float32), "index": INDEX},
        )

    @pytest.fixture
    def strings_example(self, tmp_path: Path) -> Example:
        graph = GraphWriter()
        graph.output(graph.reshape(graph.input("x", "string", (-1, 2)), (-1, 2), "y"))
        text = np.array([[b"", "ä€𝄞".encode()], [b"two words", b"a\0b"]], object)
        files = _saved(graph, tmp_path)
        return Example(backend, files, inputs={"x": text}, expected={"y": text}, config=CONFIG)

    @pytest.fixture
    def other_shapes(self, tmp_path: Path) -> list[Example]:
        graph = GraphWriter()
        x = graph.input("x", "int32", (-1, -1, -1))
        graph.output(graph.add(x, x, "y"))
        files = _saved(graph, tmp_path)
        arrays = [np.full(shape, 5, np.int32) for shape in ((1, 2, 3), (2, 0, 1), (3, 4, 1))]
        return [
            Example(backend, files, inputs={"x": each}, expected={"y": 2 * each}, config=CONFIG)
            for each in arrays
        ]

    @pytest.fixture
    def state_example(self, tmp_path: Path) -> Example:
        """y = the sum of the sequence's x."""
        graph = GraphWriter()
        x, before = graph.input("x", "float32", (-1, 3)), graph.input("before", "float32", (-1, 3))
        graph.output(graph.add(before, x, "y"))
        graph.output(graph.add(x, before, "after"))
        x_row = np.array([[1, 2, 3]], np.float32)
        answers = [{"y": count * x_row} for count in (1, 2, 3)]
        files = _saved(graph, tmp_path)
        return Example(backend, files, inputs={"x": x_row}, expected=answers, config=STATEFUL)


def _saved(graph: GraphWriter, folder: Path) -> Path:
    (folder / "model.tflite").write_bytes(graph.bytes())
    return folder
