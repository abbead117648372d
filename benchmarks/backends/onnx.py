"""ONNX Runtime: the MLP of the other benchmarks and a residual network."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.backends.case import Case
from benchmarks.models import mlp, residual
from benchmarks.models.sample import Arrays


class OnnxCase(Case):
    backend = "onnxruntime"
    package = "onnxruntime"
    more = 'parameters { key: "intra_op_thread_count" value: { string_value: "1" } }\n'

    def load(self, folder: Path) -> Callable[[Arrays], Arrays]:
        onnxruntime: Any = importlib.import_module("onnxruntime")  # ships no types
        options: Any = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session: Any = onnxruntime.InferenceSession(str(folder / "model.onnx"), options)

        def run(inputs: Arrays) -> Arrays:
            (output,) = session.run(["OUTPUT0"], dict(inputs))
            return {"OUTPUT0": output}

        return run


class OnnxMlp(OnnxCase):
    name = "onnx_mlp"
    width, results = mlp.SIZES[0], mlp.SIZES[-1]
    most = 1024

    def write(self, folder: Path) -> None:
        mlp.write(folder / "model.onnx")


class OnnxResidual(OnnxCase):
    name = "onnx_residual"
    width, results = residual.PIXELS, residual.CLASSES
    most = 32

    def write(self, folder: Path) -> None:
        residual.write(folder / "model.onnx")


CASES = [OnnxMlp(), OnnxResidual()]
