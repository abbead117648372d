"""Small functions and their expected answers: python -m core_testing jax"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from core_testing import BackendConformance, Example
from jax import export

from backend_jax import backend

# Tests on a GPU also need one that core sees. There, functions are exported for the CPU too.
GPU = {"gpu"} if jax.default_backend() == "gpu" else set()
PLATFORMS = ["cpu", "cuda"] if GPU else ["cpu"]
X = np.arange(16, dtype=np.float32).reshape(4, 4)
INDEX = np.array([[0], [2], [1], [0]], np.int32)
CONFIG = 'backend: "jax" max_batch_size: 8'
STATEFUL = """
backend: "jax" max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ 3 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 3 ] } ]
sequence_batching {
  state { input_name: "before" output_name: "after" data_type: TYPE_FP32 dims: [ 3 ] }
}
"""


def save(folder: Path, function: Callable[..., Any], **inputs: tuple[str, str]) -> Path:
    """Write model.jax of function(**arrays), and return the folder.

    inputs   name → (datatype, shape such as "b, 3")
    """
    scope = export.SymbolicScope()
    given = {
        name: jax.ShapeDtypeStruct(export.symbolic_shape(shape, scope=scope), np.dtype(dtype))
        for name, (dtype, shape) in inputs.items()
    }
    exported = export.export(jax.jit(function), platforms=PLATFORMS)(**given)
    (folder / "model.jax").write_bytes(exported.serialize())
    return folder


class TestJax(BackendConformance):
    supports = {"batching", "cpu", "dynamic_shape", "state"} | GPU

    @pytest.fixture
    def example(self, tmp_path: Path) -> Example:
        """y = 2x; picked = x[row, index[row]]. A row of an odd length fails when it runs."""
        save(
            tmp_path,
            lambda x, index: {"picked": jnp.take_along_axis(x, index, 1), "y": x + x},
            index=("int32", "b, 1"),
            x=("float32", "b, 2*n"),
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
    def other_shapes(self, tmp_path: Path) -> list[Example]:
        save(tmp_path, lambda x: {"y": x + x}, x=("int32", "b, m, n"))
        arrays = [np.full(shape, 5, np.int32) for shape in ((1, 2, 3), (2, 1, 1), (3, 4, 1))]
        return [
            Example(backend, tmp_path, inputs={"x": each}, expected={"y": 2 * each}, config=CONFIG)
            for each in arrays
        ]

    @pytest.fixture
    def state_example(self, tmp_path: Path) -> Example:
        """y = the sum of the sequence's x."""
        row = ("float32", "b, 3")
        save(tmp_path, lambda before, x: {"after": x + before, "y": x + before}, before=row, x=row)
        x = np.array([[1, 2, 3]], np.float32)
        answers = [{"y": count * x} for count in (1, 2, 3)]
        return Example(backend, tmp_path, inputs={"x": x}, expected=answers, config=STATEFUL)
