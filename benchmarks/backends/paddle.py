"""Paddle: the MLP of the other benchmarks."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.backends.case import Case
from benchmarks.models import mlp
from benchmarks.models.sample import Arrays


class PaddleMlp(Case):
    name = "paddle_mlp"
    backend = "paddle"
    package = "paddle"
    outputs = "fetch_name_0"
    more = 'parameters { key: "cpu_threads" value: { string_value: "1" } }\n'
    width, results = mlp.SIZES[0], mlp.SIZES[-1]
    most = 1024

    def write(self, folder: Path) -> None:
        conformance: Any = importlib.import_module("backend_paddle.conformance")
        paddle: Any = importlib.import_module("backend_paddle.framework").paddle

        def network(rows: Any) -> Any:
            *hidden, last = mlp.layers()
            for weights, bias in hidden:
                rows = paddle.nn.functional.relu(_layer(paddle, rows, weights, bias))
            return _layer(paddle, rows, *last)

        folder.mkdir(parents=True, exist_ok=True)
        conformance.save(folder, network, **{self.inputs: ("float32", (None, self.width))})

    def load(self, folder: Path) -> Callable[[Arrays], Arrays]:
        inference: Any = importlib.import_module("backend_paddle.framework").inference
        config = inference.Config(
            str(folder / "inference.json"), str(folder / "inference.pdiparams")
        )
        config.enable_new_ir(True)
        config.enable_new_executor(True)
        config.disable_glog_info()
        config.enable_memory_optim()
        config.disable_gpu()
        config.disable_mkldnn()
        config.set_cpu_math_library_num_threads(1)
        predictor = inference.create_predictor(config)
        given = predictor.get_input_handle(self.inputs)
        taken = predictor.get_output_handle(self.outputs)

        def run(inputs: Arrays) -> Arrays:
            given.copy_from_cpu(inputs[self.inputs])
            predictor.run()
            return {self.outputs: taken.copy_to_cpu()}

        return run


def _layer(paddle: Any, rows: Any, weights: Any, bias: Any) -> Any:
    """Return rows · weights + bias, whose values the file of weights has."""
    made = [
        paddle.static.create_parameter(
            list(each.shape),
            "float32",
            default_initializer=paddle.nn.initializer.Assign(each),
        )
        for each in (weights, bias)
    ]
    return paddle.matmul(rows, made[0]) + made[1]


CASES = [PaddleMlp()]
