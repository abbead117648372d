"""Small OpenVINO models and their expected answers: python -m core_testing openvino"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import openvino.opset13 as op
import pytest
from core_testing import BackendConformance, Example

from backend_openvino import backend

X = np.arange(12, dtype=np.float32).reshape(4, 3)
INDEX = np.array([[0], [2], [1], [0]], np.int64)
WEIGHTS = np.arange(3, dtype=np.float32)
CONFIG = 'backend: "openvino" max_batch_size: 8'
STATEFUL = """
backend: "openvino" max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ 3 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 3 ] } ]
sequence_batching {
  state { input_name: "before" output_name: "after" data_type: TYPE_FP32 dims: [ 3 ] }
}
"""


def save(
    folder: Path,
    function: Callable[..., Mapping[str, Any]],
    **inputs: tuple[Any, tuple[int, ...]],
) -> None:
    """Write model.xml. function(**nodes) returns {name: node}; inputs: name → (type, dims)."""
    parameters = {name: op.parameter(list(dims), kind) for name, (kind, dims) in inputs.items()}
    results = []
    for name, node in parameters.items():
        node.output(0).set_names({name})
    for name, node in function(**parameters).items():
        result = op.result(node)
        result.output(0).set_names({name})
        results.append(result)
    model = ov.Model(results, list(parameters.values()), "small")
    ov.save_model(model, folder / "model.xml", compress_to_fp16=False)


class TestOpenVino(BackendConformance):
    supports = {"batching", "cpu", "dynamic_shape", "state", "strings"}

    @pytest.fixture
    def example(self, tmp_path: Path) -> Example:
        """y = 2x + WEIGHTS, which are 3 constants; picked = x[row, index[row]].

        A row of another length fails when it runs.
        """
        save(
            tmp_path,
            lambda x, index: {
                "y": op.add(op.add(x, x), WEIGHTS),
                "picked": op.gather_elements(x, index, 1),
            },
            x=(ov.Type.f32, (-1, -1)),
            index=(ov.Type.i64, (-1, 1)),
        )
        return Example(
            backend,
            tmp_path,
            inputs={"x": X, "index": INDEX},
            expected={"y": 2 * X + WEIGHTS, "picked": np.take_along_axis(X, INDEX, 1)},
            config=CONFIG,
            failing={"x": np.ones((4, 5), np.float32), "index": INDEX},
        )

    @pytest.fixture
    def strings_example(self, tmp_path: Path) -> Example:
        as_it_is = np.zeros(2, np.int64)
        save(
            tmp_path,
            lambda x: {"y": op.reshape(x, as_it_is, True)},
            x=(ov.Type.string, (-1, 2)),
        )
        text = np.array([[b"", "ä€𝄞".encode()], [b"two words", b"a\0b"]], object)
        return Example(backend, tmp_path, inputs={"x": text}, expected={"y": text}, config=CONFIG)

    @pytest.fixture
    def other_shapes(self, tmp_path: Path) -> list[Example]:
        save(tmp_path, lambda x: {"y": op.add(x, x)}, x=(ov.Type.i32, (-1, -1, -1)))
        arrays = [np.full(shape, 5, np.int32) for shape in ((1, 2, 3), (2, 0, 1), (3, 4, 1))]
        return [
            Example(backend, tmp_path, inputs={"x": each}, expected={"y": 2 * each}, config=CONFIG)
            for each in arrays
        ]

    @pytest.fixture
    def state_example(self, tmp_path: Path) -> Example:
        """y = the sum of the sequence's x."""
        row = (ov.Type.f32, (-1, 3))
        save(
            tmp_path,
            lambda x, before: {"y": op.add(before, x), "after": op.add(x, before)},
            x=row,
            before=row,
        )
        x = np.array([[1, 2, 3]], np.float32)
        answers = [{"y": count * x} for count in (1, 2, 3)]
        return Example(backend, tmp_path, inputs={"x": x}, expected=answers, config=STATEFUL)
