"""The contract that every backend keeps, in a child and in the server's process."""

import numpy as np
import pytest
from backend_python import backend

from core.testing import BackendConformance, Example

X = np.arange(12, dtype=np.float32).reshape(4, 3)
SUM = """
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            x = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()
            if (x < 0).any():
                raise ValueError("below zero")
            responses.append(pb_utils.InferenceResponse([
                pb_utils.Tensor("twice", x * 2),
                pb_utils.Tensor("sum", x.sum(axis=1, keepdims=True, dtype=np.float64))]))
        return responses
"""
COPY = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor(
            "y", request.inputs()[0].as_numpy())]) for request in requests]
"""
ROWS = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            for row in request.inputs()[0].as_numpy():
                sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("y", row)]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""


class Python(BackendConformance):
    supports = {"batching", "cpu", "dynamic_shape", "empty_batch", "streaming", "strings"}
    mode: str

    @pytest.fixture
    def example(self, tmp_path):
        """twice = 2x, sum = the sum of each row; an x below zero makes it raise."""
        return self._example(
            tmp_path,
            SUM,
            {"x": X},
            {"twice": 2 * X, "sum": X.sum(axis=1, keepdims=True, dtype=np.float64)},
            "max_batch_size: 8 "
            + _tensors("TYPE_FP32", "3", twice="TYPE_FP32 3", sum="TYPE_FP64 1"),
            {"x": X - 100},
        )

    @pytest.fixture
    def strings_example(self, tmp_path):
        text = np.array([[b"", "ä€𝄞".encode()], [b"two words", b"a\0b"]], object)
        config = "max_batch_size: 8 " + _tensors("TYPE_STRING", "2", y="TYPE_STRING 2")
        return self._example(tmp_path, COPY, {"x": text}, {"y": text}, config)

    @pytest.fixture
    def other_shapes(self, tmp_path):
        config = "max_batch_size: 8 " + _tensors("TYPE_INT32", "-1, -1", y="TYPE_INT32 -1,-1")
        arrays = [np.full(shape, 5, np.int32) for shape in ((1, 2, 3), (2, 0, 1), (3, 4, 1))]
        return [self._example(tmp_path, COPY, {"x": a}, {"y": a}, config) for a in arrays]

    @pytest.fixture
    def stream_example(self, tmp_path):
        config = _tensors("TYPE_FP32", "-1, 3", y="TYPE_FP32 3")
        config += " model_transaction_policy { decoupled: true }"
        return self._example(tmp_path, ROWS, {"x": X}, [{"y": row} for row in X], config)

    def _example(self, folder, source, inputs, expected, config, failing=None):
        (folder / "model.py").write_text(source)
        mode = f'key: "EXECUTION_MODE" value {{ string_value: "{self.mode}" }}'
        config = f'backend: "python" parameters {{ {mode} }} {config}'
        return Example(backend, folder, inputs, expected, config, failing)


def _tensors(datatype, dims, **outputs):
    text = f'input [ {{ name: "x" data_type: {datatype} dims: [ {dims} ] }} ]'
    for name, output in outputs.items():
        datatype, dims = output.split()
        text += f' output [ {{ name: "{name}" data_type: {datatype} dims: [ {dims} ] }} ]'
    return text


class TestInAChild(Python):
    mode = "process"


class TestOnAThread(Python):
    mode = "thread"


class TestOnTheLoop(Python):
    mode = "inline"
