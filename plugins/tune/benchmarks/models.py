"""Three models to tune: a small convolutional network, a forest, and a Python model with numpy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

CNN = """\
backend: "onnxruntime"
max_batch_size: 16
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 3072 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 10 ] } ]
instance_group [ { kind: KIND_CPU count: 1 } ]
"""
FOREST = """\
backend: "fil"
max_batch_size: 1024
instance_group [ { kind: KIND_CPU count: 1 } ]
"""
PYTHON = """\
backend: "python"
max_batch_size: 64
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 256 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 16 ] } ]
instance_group [ { kind: KIND_CPU count: 1 } ]
"""
LAYERS = '''\
"""Four layers of numpy; a part of the time is for Python itself, whatever the rows."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        random = np.random.default_rng(1)
        sizes = [256, 768, 768, 768, 16]
        self.layers = [
            random.standard_normal(pair).astype(np.float32) / 16 for pair in zip(sizes, sizes[1:])
        ]

    def execute(self, requests):
        inputs = [pb_utils.get_input_tensor_by_name(r, "INPUT0").as_numpy() for r in requests]
        rows = np.concatenate(inputs)
        checked = sum(hash(number) for number in range(15_000))
        for layer in self.layers:
            rows = np.tanh(rows @ layer)
        answers, first = [], 0
        for each in inputs:
            tensor = pb_utils.Tensor("OUTPUT0", rows[first : first + len(each)])
            answers.append(pb_utils.InferenceResponse([tensor]))
            first += len(each)
        return answers
'''


@dataclass(frozen=True)
class Case:
    """A model, and what is asked of it.

    write   writes its folder
    flags   of core tune, with the values that the exhaustive search combines
    """

    name: str
    write: Callable[[Path], None]
    flags: Sequence[str]


def write_cnn(folder: Path) -> None:
    """Write ResNet-20 for images of 32 by 32. Needs the package onnx."""
    from benchmarks.models.residual import write

    write(folder / "1" / "model.onnx")
    (folder / "config.pbtxt").write_text(CNN)


def write_forest(folder: Path) -> None:
    """Write 600 trees of XGBoost for 40 features. Needs xgboost."""
    import xgboost

    random = np.random.default_rng(4)
    rows = random.standard_normal((4000, 40)).astype(np.float32)
    target = (rows[:, :20].sum(1) + random.standard_normal(4000) > 0).astype(int)
    made = xgboost.XGBClassifier(n_estimators=600, max_depth=8, n_jobs=1).fit(rows, target)
    (folder / "1").mkdir(parents=True)
    made.save_model(folder / "1" / "xgboost.json")
    (folder / "config.pbtxt").write_text(FOREST)


def write_python(folder: Path) -> None:
    """Write a model of four layers in numpy."""
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "model.py").write_text(LAYERS)
    (folder / "config.pbtxt").write_text(PYTHON)


_DELAYS = ("--delays", "0,5ms")
_VALUES = ("--instances", "1,2", "--wait-for", "full")
CASES = {
    each.name: each
    for each in (
        Case(
            "cnn",
            write_cnn,
            ["--slo", "p95=100ms", *_VALUES, "--batch-sizes", "1,4,16", "--delays", "0,10ms"],
        ),
        Case(
            "forest",
            write_forest,
            ["--slo", "p95=50ms", "-b", "64", *_VALUES, "--batch-sizes", "64,256,1024", *_DELAYS],
        ),
        Case(
            "python",
            write_python,
            ["--slo", "p95=60ms", *_VALUES, "--batch-sizes", "1,4,16,64", "--delays", "0,5ms"],
        ),
    )
}
