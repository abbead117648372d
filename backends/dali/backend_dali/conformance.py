"""Small pipelines and their expected answers: python -m core_testing dali"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from core_testing import BackendConformance, Example
from nvidia.dali import fn, types
from nvidia.dali.pipeline import Pipeline

from backend_dali import backend

X = np.arange(16, dtype=np.float32).reshape(4, 4)
OFFSET = np.array([[1], [2], [3], [4]], np.float32)
CONFIG = 'backend: "dali" max_batch_size: 8'


def save(
    folder: Path, function: Callable[..., Any], outputs: int = 1, batch_size: int = 8, **inputs: Any
) -> Path:
    """Write model.dali of function(*inputs) on the CPU, and return the folder.

    function   of one DataNode for each input; returns one or a tuple of them, of one dimension in FP32
    outputs    how many it returns
    inputs     name → number of dimensions of a sample, in FP32; or a dict of arguments of external_source
    """

    pipeline = Pipeline(
        batch_size=batch_size,
        num_threads=1,
        device_id=None,
        output_dtype=[types.FLOAT] * outputs,
        output_ndim=[1] * outputs,
    )
    with pipeline:
        given = []
        for name, about in inputs.items():
            more = about if isinstance(about, dict) else {"dtype": types.FLOAT, "ndim": about}
            given.append(fn.external_source(name=name, **more))
        found = function(*given)
        pipeline.set_outputs(*(found if isinstance(found, tuple) else (found,)))
    pipeline.serialize(filename=str(folder / "model.dali"))
    return folder


def config_of(*outputs: str) -> str:
    """Return a configuration that names the outputs."""
    return CONFIG + "".join(f' output {{ name: "{name}" }}' for name in outputs)


class TestDali(BackendConformance):
    supports = {"batching", "cpu", "dynamic_shape", "gpu"}  # every DALI is built for GPUs

    @pytest.fixture
    def example(self, tmp_path: Path) -> Example:
        """y = 2x; moved = x + offset. An offset that is too long fails when it runs."""
        save(
            tmp_path,
            lambda x, offset: (fn.copy(x * 2.0, name="y"), fn.copy(x + offset, name="moved")),
            2,
            x=1,
            offset=1,
        )
        return Example(
            backend,
            tmp_path,
            inputs={"x": X, "offset": OFFSET},
            expected={"y": 2 * X, "moved": X + OFFSET},
            config=CONFIG,
            failing={"x": X, "offset": np.ones((4, 3), np.float32)},
        )

    @pytest.fixture
    def other_shapes(self, tmp_path: Path) -> list[Example]:
        save(tmp_path, lambda x: fn.copy(x * 2.0, name="y"), x=1)
        arrays = [np.full(shape, 5, np.float32) for shape in ((1, 2), (2, 1), (3, 4))]
        return [
            Example(backend, tmp_path, inputs={"x": each}, expected={"y": 2 * each}, config=CONFIG)
            for each in arrays
        ]
