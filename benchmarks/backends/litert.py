"""LiteRT: the MLP of the other benchmarks."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.backends.case import Case
from benchmarks.models import mlp
from benchmarks.models.sample import Arrays


class LiteRtMlp(Case):
    name = "litert_mlp"
    backend = "litert"
    package = "ai_edge_litert"
    more = 'parameters { key: "threads" value: { string_value: "1" } }\n'
    width, results = mlp.SIZES[0], mlp.SIZES[-1]
    most = 1024

    def write(self, folder: Path) -> None:
        small_model: Any = importlib.import_module("backend_litert.small_model")
        folder.mkdir(parents=True, exist_ok=True)
        graph = small_model.GraphWriter()
        rows = graph.input("INPUT0", "float32", (-1, self.width))
        *hidden, last = mlp.layers()
        for number, (weights, bias) in enumerate(hidden):
            rows = graph.layer(rows, weights.T.copy(), bias, f"hidden{number}", relu=True)
        graph.output(graph.layer(rows, last[0].T.copy(), last[1], "OUTPUT0", relu=False))
        (folder / "model.tflite").write_bytes(graph.bytes())

    def load(self, folder: Path) -> Callable[[Arrays], Arrays]:
        interpreter_module: Any = importlib.import_module("ai_edge_litert.interpreter")
        interpreter = interpreter_module.Interpreter(str(folder / "model.tflite"), num_threads=1)
        (given,), (taken,) = interpreter.get_input_details(), interpreter.get_output_details()
        allocated: list[tuple[int, ...]] = [()]

        def run(inputs: Arrays) -> Arrays:
            rows = inputs["INPUT0"]
            if rows.shape != allocated[0]:
                interpreter.resize_tensor_input(given["index"], rows.shape)
                interpreter.allocate_tensors()
                allocated[0] = rows.shape
            interpreter.set_tensor(given["index"], rows)
            interpreter.invoke()
            return {"OUTPUT0": interpreter.get_tensor(taken["index"])}

        return run


CASES = [LiteRtMlp()]
