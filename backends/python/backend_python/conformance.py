"""Small Python models and their true answers, by where they run: python -m core_testing python"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from core_testing import BackendConformance, Example

from backend_python import backend

X = np.arange(12, dtype=np.float32).reshape(4, 3)

DOUBLE = """
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        found = []
        for request in requests:
            x = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()
            if (x < 0).any():
                raise ValueError("the model takes no negative numbers")
            found.append(pb_utils.InferenceResponse([
                pb_utils.Tensor("y", 2 * x),
                pb_utils.Tensor("total", x.sum(1, keepdims=True)),
            ]))
        return found
"""
ECHO = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [
            pb_utils.InferenceResponse([
                pb_utils.Tensor("y", pb_utils.get_input_tensor_by_name(request, "x").as_numpy())
            ])
            for request in requests
        ]
"""
COUNTDOWN = """
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            n = int(pb_utils.get_input_tensor_by_name(request, "n").as_numpy().ravel()[0])
            for left in range(n, 0, -1):
                output = pb_utils.Tensor("left", np.array([[left]], np.int32))
                sender.send(pb_utils.InferenceResponse([output]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""


def example_of(
    folder: Path,
    code: str,
    inputs: Mapping[str, np.ndarray],
    expected: Any,
    config: str | None = None,
    **more: Any,
) -> Example:
    """An example whose version folder holds a model.py with that code."""
    (folder / "model.py").write_text(code)
    more["described"] = False  # these models have no auto_complete_config
    return Example(backend, folder, inputs=inputs, expected=expected, config=config, **more)


def echo_config(datatype: str, dims: str) -> str:
    """config.pbtxt of x → y."""
    tensor = f"data_type: {datatype} dims: [ {dims} ]"
    return (
        f'backend: "python" max_batch_size: 8 input [ {{ name: "x" {tensor} }} ] '
        f'output [ {{ name: "y" {tensor} }} ]'
    )


class PythonModels(BackendConformance):
    supports = {"batching", "cpu", "dynamic_shape", "strings", "streaming"}
    loads = 6  # processes start for each
    mode = ""  # the parameter EXECUTION_MODE

    @pytest.fixture
    def example(self, tmp_path: Path) -> Example:
        config = f"""
            backend: "python" max_batch_size: 8
            input [ {{ name: "x" data_type: TYPE_FP32 dims: [ 3 ] }} ]
            output [ {{ name: "y" data_type: TYPE_FP32 dims: [ 3 ] }},
                     {{ name: "total" data_type: TYPE_FP32 dims: [ 1 ] }} ]
            {self.parameters}
        """
        expected = {"y": 2 * X, "total": X.sum(1, keepdims=True)}
        return example_of(tmp_path, DOUBLE, {"x": X}, expected, config, failing={"x": -1 - X})

    @pytest.fixture
    def strings_example(self, tmp_path: Path) -> Example:
        text = np.array([[b"", "ä€𝄞".encode()], [b"a\0b", b"\xff\xfe"]], object)
        config = echo_config("TYPE_STRING", "2") + self.parameters
        return example_of(tmp_path, ECHO, {"x": text}, {"y": text}, config)

    @pytest.fixture
    def other_shapes(self, tmp_path: Path) -> list[Example]:
        config = echo_config("TYPE_INT16", "-1, -1") + self.parameters
        arrays = [np.full(shape, 7, np.int16) for shape in ((1, 2, 3), (2, 0, 1), (3, 4, 1))]
        return [example_of(tmp_path, ECHO, {"x": each}, {"y": each}, config) for each in arrays]

    @pytest.fixture
    def stream_example(self, tmp_path: Path) -> Example:
        config = f"""
            backend: "python" max_batch_size: 8
            input [ {{ name: "n" data_type: TYPE_INT32 dims: [ 1 ] }} ]
            output [ {{ name: "left" data_type: TYPE_INT32 dims: [ 1 ] }} ]
            model_transaction_policy {{ decoupled: true }}
            {self.parameters}
        """
        expected = [{"left": np.array([[left]], np.int32)} for left in (3, 2, 1)]
        return example_of(tmp_path, COUNTDOWN, {"n": np.array([[3]], np.int32)}, expected, config)

    @property
    def parameters(self) -> str:
        """The part of config.pbtxt that says where the model runs."""
        if not self.mode:
            return ""
        value = f'value {{ string_value: "{self.mode}" }}'
        return f'parameters {{ key: "EXECUTION_MODE" {value} }}'


class TestProcess(PythonModels):
    pass


class TestShared(PythonModels):
    mode = "shared"


class TestThread(PythonModels):
    mode = "thread"
