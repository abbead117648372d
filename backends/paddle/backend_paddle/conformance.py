"""Small models and their expected answers: python -m core_testing paddle"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from core_testing import BackendConformance, Example

from backend_paddle import backend
from backend_paddle.framework import paddle

X = np.arange(16, dtype=np.float32).reshape(4, 4)
INDEX = np.array([[0], [2], [1], [0]], np.int32)
CONFIG = 'backend: "paddle" max_batch_size: 8'
STATEFUL = """
backend: "paddle" max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ 3 ] } ]
output [ { name: "fetch_name_0" data_type: TYPE_FP32 dims: [ 3 ] } ]
sequence_batching {
  state { input_name: "before" output_name: "fetch_name_1" data_type: TYPE_FP32 dims: [ 3 ] }
}
"""


def save(
    folder: Path,
    function: Callable[..., Any],
    stem: str = "inference",
    *,
    paddle_2: bool = False,
    **inputs: tuple[str, Sequence[int | None]],
) -> Path:
    """Write a program and its weights, and return the folder. Not thread-safe: Paddle's mode is global.

    function   of one symbolic tensor for each input; returns one or a tuple of them
    stem       of the names of the files
    paddle_2   write .pdmodel in place of .json
    inputs     name → (datatype, shape with None for any size)
    """
    paddle.enable_static()
    try:
        with paddle.pir_utils.OldIrGuard() if paddle_2 else nullcontext():
            program, start = paddle.static.Program(), paddle.static.Program()
            with paddle.static.program_guard(program, start):
                given = [
                    paddle.static.data(name, list(shape), dtype)
                    for name, (dtype, shape) in inputs.items()
                ]
                found = function(*given)
                outputs = list(found) if isinstance(found, tuple) else [found]
                executor = paddle.static.Executor(paddle.CPUPlace())
                executor.run(start)
                paddle.static.save_inference_model(str(folder / stem), given, outputs, executor)
    finally:
        paddle.disable_static()
    return folder


class TestPaddle(BackendConformance):
    supports = {"batching", "cpu", "dynamic_shape", "state"}

    @pytest.fixture
    def example(self, tmp_path: Path) -> Example:
        """fetch_name_0 = 2x in pairs of columns; fetch_name_1 = x[row, index[row]].

        A row of an odd length fails when it runs.
        """

        def function(x: Any, index: Any) -> Any:
            pairs = paddle.reshape(x, [0, -1, 2])
            return paddle.flatten(pairs * 2, 1), paddle.take_along_axis(x, index, 1)

        save(tmp_path, function, x=("float32", (None, None)), index=("int32", (None, 1)))
        return Example(
            backend,
            tmp_path,
            inputs={"x": X, "index": INDEX},
            expected={"fetch_name_0": 2 * X, "fetch_name_1": np.take_along_axis(X, INDEX, 1)},
            config=CONFIG,
            failing={"x": np.ones((4, 5), np.float32), "index": INDEX},
        )

    @pytest.fixture
    def other_shapes(self, tmp_path: Path) -> list[Example]:
        save(tmp_path, lambda x: x + x, x=("int32", (None, None, None)))
        arrays = [np.full(shape, 5, np.int32) for shape in ((1, 2, 3), (2, 1, 1), (3, 4, 1))]
        return [
            Example(
                backend,
                tmp_path,
                inputs={"x": each},
                expected={"fetch_name_0": 2 * each},
                config=CONFIG,
            )
            for each in arrays
        ]

    @pytest.fixture
    def state_example(self, tmp_path: Path) -> Example:
        """fetch_name_0 = the sum of the sequence's x."""
        row = ("float32", (None, 3))
        save(tmp_path, lambda before, x: (x + before, x + before * 1), before=row, x=row)
        x = np.array([[1, 2, 3]], np.float32)
        answers = [{"fetch_name_0": count * x} for count in (1, 2, 3)]
        return Example(backend, tmp_path, inputs={"x": x}, expected=answers, config=STATEFUL)
