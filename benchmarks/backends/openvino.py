"""OpenVINO: the MLP of the other benchmarks, a small convolutional network, and a residual one as ONNX."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.backends.case import Case
from benchmarks.models import mlp, residual
from benchmarks.models.sample import Arrays

_SIDE = 16


class OpenVinoCase(Case):
    backend = "openvino"
    package = "openvino"
    more = 'parameters { key: "INFERENCE_NUM_THREADS" value: { string_value: "1" } }\n'
    file = "model.xml"

    def graph(self, openvino: Any, ops: Any, rows: Any) -> Any:
        """Return the result node for `rows` FP32[n, width], the same in every run."""
        raise NotImplementedError

    def write(self, folder: Path) -> None:
        openvino: Any = importlib.import_module("openvino")
        ops: Any = importlib.import_module("openvino.opset13")
        folder.mkdir(parents=True, exist_ok=True)
        rows = ops.parameter([-1, self.width], openvino.Type.f32)
        rows.output(0).set_names({"INPUT0"})
        results = self.graph(openvino, ops, rows)
        results.output(0).set_names({"OUTPUT0"})
        model = openvino.Model([ops.result(results)], [rows], self.name)
        openvino.save_model(model, str(folder / self.file), compress_to_fp16=False)

    def load(self, folder: Path) -> Callable[[Arrays], Arrays]:
        openvino: Any = importlib.import_module("openvino")
        settings = {"INFERENCE_NUM_THREADS": 1, "PERFORMANCE_HINT": "LATENCY"}
        compiled = openvino.Core().compile_model(str(folder / self.file), "CPU", settings)
        request = compiled.create_infer_request()

        def run(inputs: Arrays) -> Arrays:
            found = request.infer(dict(inputs), share_inputs=True, share_outputs=False)
            return {"OUTPUT0": found["OUTPUT0"]}

        return run


class OpenVinoMlp(OpenVinoCase):
    name = "openvino_mlp"
    width, results = mlp.SIZES[0], mlp.SIZES[-1]
    most = 1024

    def graph(self, openvino: Any, ops: Any, rows: Any) -> Any:
        *hidden, last = mlp.layers()
        for weights, bias in hidden:
            rows = ops.relu(ops.add(ops.matmul(rows, weights, False, False), bias))
        return ops.add(ops.matmul(rows, last[0], False, False), last[1])


class OpenVinoConvolution(OpenVinoCase):
    name = "openvino_convolution"
    width, results = _SIDE * _SIDE, 10

    def graph(self, openvino: Any, ops: Any, rows: Any) -> Any:
        random = np.random.default_rng(11)

        def weights(*shape: int) -> Any:
            return random.standard_normal(shape, np.float32) / np.float32(np.prod(shape[1:]) ** 0.5)

        def convolved(images: Any, kernel: Any) -> Any:
            return ops.relu(ops.convolution(images, kernel, [1, 1], [1, 1], [1, 1], [1, 1]))

        images = ops.reshape(rows, np.array([-1, 1, _SIDE, _SIDE]), False)
        pooled = ops.max_pool(
            convolved(images, weights(16, 1, 3, 3)), [2, 2], [1, 1], [0, 0], [0, 0], [2, 2]
        )
        features = convolved(pooled.output(0), weights(32, 16, 3, 3))
        flat = 32 * (_SIDE // 2) ** 2
        vectors = ops.reshape(features, np.array([-1, flat]), False)
        return ops.matmul(vectors, weights(self.results, flat), False, True)


class OpenVinoResidual(OpenVinoCase):
    name = "openvino_residual"
    more = OpenVinoCase.more + 'default_model_filename: "model.onnx"\n'
    file = "model.onnx"
    width, results = residual.PIXELS, residual.CLASSES
    most = 32

    def write(self, folder: Path) -> None:
        residual.write(folder / self.file)


CASES = [OpenVinoMlp(), OpenVinoConvolution(), OpenVinoResidual()]
