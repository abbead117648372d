"""Small ONNX models and their expected answers for the contract tests: python -m core_testing onnx

The package onnx makes the models. Serving does not need it.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from core_testing import BackendConformance, Example

from backend_onnx import backend

onnx = pytest.importorskip("onnx", reason="the models are made by the package onnx")
helper, TensorProto = onnx.helper, onnx.TensorProto

X = np.arange(12, dtype=np.float32).reshape(4, 3)
INDEX = np.array([[0], [2], [1], [-1]], np.int64)
CONFIG = 'backend: "onnxruntime" max_batch_size: 8'
STATEFUL = """
backend: "onnxruntime" max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ 3 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 3 ] } ]
sequence_batching {
  state { input_name: "before" output_name: "after" data_type: TYPE_FP32 dims: [ 3 ] }
}
"""

Tensors = Mapping[str, tuple[int, Sequence[int | str]]]


def save(
    folder: Path,
    nodes: Sequence[tuple[str, list[str], list[str], dict[str, Any]]],
    inputs: Tensors,
    outputs: Tensors,
) -> None:
    """Write model.onnx. nodes: (operator, inputs, outputs, attributes); tensors: name → (type, shape)."""
    graph = helper.make_graph(
        [
            helper.make_node(operator, takes, gives, **attributes)
            for operator, takes, gives, attributes in nodes
        ],
        "graph",
        [helper.make_tensor_value_info(name, *each) for name, each in inputs.items()],
        [helper.make_tensor_value_info(name, *each) for name, each in outputs.items()],
    )
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), folder / "model.onnx")


def save_identity(folder: Path, kind: int, shape: Sequence[int | str]) -> None:
    """Write a model with y = x."""
    save(folder, [("Identity", ["x"], ["y"], {})], {"x": (kind, shape)}, {"y": (kind, shape)})


class TestOnnx(BackendConformance):
    supports = {"batching", "cpu", "dynamic_shape", "state", "strings"}

    @pytest.fixture
    def example(self, tmp_path: Path) -> Example:
        """y = 2x; picked = the element of each row at position index, which raises out of range."""
        save(
            tmp_path,
            [
                ("Add", ["x", "x"], ["y"], {}),
                ("GatherElements", ["x", "index"], ["picked"], {"axis": 1}),
            ],
            {"x": (TensorProto.FLOAT, ["n", 3]), "index": (TensorProto.INT64, ["n", 1])},
            {"y": (TensorProto.FLOAT, ["n", 3]), "picked": (TensorProto.FLOAT, ["n", 1])},
        )
        return Example(
            backend,
            tmp_path,
            inputs={"x": X, "index": INDEX},
            expected={"y": 2 * X, "picked": np.take_along_axis(X, INDEX, 1)},
            config=CONFIG,
            failing={"x": X, "index": INDEX + 100},
        )

    @pytest.fixture
    def strings_example(self, tmp_path: Path) -> Example:
        save_identity(tmp_path, TensorProto.STRING, ["n", 2])
        text = np.array([[b"", "ä€𝄞".encode()], [b"two words", b"a\0b"]], object)
        return Example(backend, tmp_path, inputs={"x": text}, expected={"y": text}, config=CONFIG)

    @pytest.fixture
    def other_shapes(self, tmp_path: Path) -> list[Example]:
        save_identity(tmp_path, TensorProto.INT32, ["n", "a", "b"])
        arrays = [np.full(shape, 5, np.int32) for shape in ((1, 2, 3), (2, 0, 1), (3, 4, 1))]
        return [
            Example(backend, tmp_path, inputs={"x": each}, expected={"y": each}, config=CONFIG)
            for each in arrays
        ]

    @pytest.fixture
    def state_example(self, tmp_path: Path) -> Example:
        """y = the sum of the sequence's x."""
        row: tuple[int, list[int | str]] = (TensorProto.FLOAT, ["n", 3])
        save(
            tmp_path,
            [("Add", ["before", "x"], ["y"], {}), ("Add", ["before", "x"], ["after"], {})],
            {"x": row, "before": row},
            {"y": row, "after": row},
        )
        x = np.array([[1, 2, 3]], np.float32)
        answers = [{"y": count * x} for count in (1, 2, 3)]
        return Example(backend, tmp_path, inputs={"x": x}, expected=answers, config=STATEFUL)
