"""Small models and their expected answers: python -m core_testing tensorflow"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from core_testing import BackendConformance, Example

from backend_tensorflow import backend
from backend_tensorflow.framework import tf

# Tests on a GPU also need one that core sees.
GPU = {"gpu"} if tf.config.list_physical_devices("GPU") else set()
X = np.arange(16, dtype=np.float32).reshape(4, 4)
INDEX = np.array([[0], [2], [1], [0]], np.int32)
CONFIG = 'backend: "tensorflow" max_batch_size: 8'
STATEFUL = """
backend: "tensorflow" max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ 3 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 3 ] } ]
sequence_batching {
  state { input_name: "before" output_name: "after" data_type: TYPE_FP32 dims: [ 3 ] }
}
"""


def save(folder: Path, function: Callable[..., Any], *specs: Any) -> Path:
    """Write model.savedmodel of a function with the signature `specs`, and return the folder."""
    module = tf.Module()
    module.function = tf.function(function, input_signature=specs, autograph=False)
    tf.saved_model.save(module, str(folder / "model.savedmodel"), signatures=module.function)
    return folder


class TestTensorFlow(BackendConformance):
    supports = {"batching", "cpu", "dynamic_shape", "state", "strings"} | GPU

    @pytest.fixture
    def example(self, tmp_path: Path) -> Example:
        """y = 2x in pairs of columns; picked = x[row, index[row]]. A row of an odd length fails."""

        def function(index: Any, x: Any) -> Any:
            pairs = tf.reshape(x, [tf.shape(x)[0], -1, 2])
            y = tf.reshape(pairs * 2, [tf.shape(x)[0], 2 * tf.shape(pairs)[1]])
            return {"picked": tf.gather(x, index, batch_dims=1), "y": y}

        save(
            tmp_path,
            function,
            tf.TensorSpec([None, 1], tf.int32),
            tf.TensorSpec([None, None], tf.float32),
        )
        return Example(
            backend,
            tmp_path,
            inputs={"index": INDEX, "x": X},
            expected={"picked": np.take_along_axis(X, INDEX, 1), "y": 2 * X},
            config=CONFIG,
            failing={"index": INDEX, "x": np.ones((4, 5), np.float32)},
        )

    @pytest.fixture
    def strings_example(self, tmp_path: Path) -> Example:
        save(tmp_path, lambda x: {"y": tf.identity(x)}, tf.TensorSpec([None, 2], tf.string))
        text = np.array([[b"", "ä€𝄞".encode()], [b"two words", b"a\0b"]], object)
        return Example(backend, tmp_path, inputs={"x": text}, expected={"y": text}, config=CONFIG)

    @pytest.fixture
    def other_shapes(self, tmp_path: Path) -> list[Example]:
        save(tmp_path, lambda x: {"y": x + x}, tf.TensorSpec([None, None, None], tf.int32))
        arrays = [np.full(shape, 5, np.int32) for shape in ((1, 2, 3), (2, 0, 1), (3, 4, 1))]
        return [
            Example(backend, tmp_path, inputs={"x": each}, expected={"y": 2 * each}, config=CONFIG)
            for each in arrays
        ]

    @pytest.fixture
    def state_example(self, tmp_path: Path) -> Example:
        """y = the sum of the sequence's x."""
        row = tf.TensorSpec([None, 3], tf.float32)
        save(tmp_path, lambda before, x: {"after": x + before, "y": x + before}, row, row)
        x = np.array([[1, 2, 3]], np.float32)
        answers = [{"y": count * x} for count in (1, 2, 3)]
        return Example(backend, tmp_path, inputs={"x": x}, expected=answers, config=STATEFUL)
