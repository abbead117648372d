"""Small modules and their expected answers: python -m core_testing tvm"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm
from core_testing import BackendConformance, Example
from tvm import relax

from backend_tvm import backend

X = np.arange(16, dtype=np.float32).reshape(4, 4)
INDEX = np.array([[0, 1, 2, 3], [2, 2, 0, 1], [1, 0, 3, 2], [0, 0, 0, 0]], np.int64)
CONFIG = 'backend: "tvm" max_batch_size: 8'
STATEFUL = """
backend: "tvm" max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ 3 ] } ]
output [ { name: "output0" data_type: TYPE_FP32 dims: [ 3 ] } ]
sequence_batching {
  state { input_name: "before" output_name: "output1" data_type: TYPE_FP32 dims: [ 3 ] }
}
"""


def save(
    folder: Path,
    function: Callable[..., Any],
    *,
    target: str = "llvm",
    mode: str = "bytecode",
    **inputs: tuple[str, Sequence[int | str]],
) -> Path:
    """Compile `main` of expressions of Relax, write model.so, and return the folder.

    function   of one relax.Var for each input; returns one expression or a tuple of them
    mode       of the virtual machine: bytecode or compiled
    inputs     name → (datatype, shape); a dimension is a number, a variable, or a multiple such as "2*n"
    """
    builder, variables = relax.BlockBuilder(), _Variables()
    given = [
        relax.Var(name, relax.TensorType(variables.shape(shape), dtype))
        for name, (dtype, shape) in inputs.items()
    ]
    with builder.function("main", given):
        with builder.dataflow():
            found = function(*given)
            results = found if isinstance(found, tuple) else (found,)
            results = tuple(builder.emit_output(builder.normalize(each)) for each in results)
        builder.emit_func_output(results if isinstance(found, tuple) else results[0])
    module = relax.build(builder.get(), target, exec_mode=mode)
    module.export_library(str(folder / "model.so"))
    return folder


class _Variables:
    """The variables in the shapes of one function."""

    def __init__(self) -> None:
        self._found: dict[str, Any] = {}

    def shape(self, dims: Sequence[int | str]) -> list[Any]:
        return [each if isinstance(each, int) else self._dim(each) for each in dims]

    def _dim(self, text: str) -> Any:
        times, _, name = text.rpartition("*")
        variable = self._found.setdefault(name, tvm.tirx.Var(name, "int64"))
        return variable * int(times) if times else variable


class TestTvm(BackendConformance):
    supports = {"batching", "cpu", "dynamic_shape", "state"}

    @pytest.fixture
    def example(self, tmp_path: Path) -> Example:
        """output0 = 2x; output1 = x[row, index[row]]. Rows of two lengths fail when they run."""
        save(
            tmp_path,
            lambda x, index: (x + x, relax.op.gather_elements(x, index, 1)),
            x=("float32", ("b", "n")),
            index=("int64", ("b", "n")),
        )
        return Example(
            backend,
            tmp_path,
            inputs={"x": X, "index": INDEX},
            expected={"output0": 2 * X, "output1": np.take_along_axis(X, INDEX, 1)},
            config=CONFIG,
            failing={"x": np.ones((4, 5), np.float32), "index": INDEX},
        )

    @pytest.fixture
    def other_shapes(self, tmp_path: Path) -> list[Example]:
        save(tmp_path, lambda x: x + x, x=("int32", ("b", "m", "n")))
        arrays = [np.full(shape, 5, np.int32) for shape in ((1, 2, 3), (2, 1, 1), (3, 4, 1))]
        return [
            Example(
                backend,
                tmp_path,
                inputs={"x": each},
                expected={"output0": 2 * each},
                config=CONFIG,
            )
            for each in arrays
        ]

    @pytest.fixture
    def state_example(self, tmp_path: Path) -> Example:
        """output0 = the sum of the sequence's x."""
        row = ("float32", ("b", 3))
        save(tmp_path, lambda before, x: (x + before, x + before), before=row, x=row)
        x = np.array([[1, 2, 3]], np.float32)
        answers = [{"output0": count * x} for count in (1, 2, 3)]
        return Example(backend, tmp_path, inputs={"x": x}, expected=answers, config=STATEFUL)
