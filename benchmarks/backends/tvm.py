"""TVM: the MLP of the other benchmarks."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.backends.case import Case
from benchmarks.models import mlp
from benchmarks.models.sample import Arrays


class TvmMlp(Case):
    name = "tvm_mlp"
    backend = "tvm"
    package = "tvm"
    outputs = "output0"
    width, results = mlp.SIZES[0], mlp.SIZES[-1]
    most = 1024

    def write(self, folder: Path) -> None:
        conformance: Any = importlib.import_module("backend_tvm.conformance")
        relax: Any = importlib.import_module("tvm.relax")

        def network(rows: Any) -> Any:
            *hidden, last = mlp.layers()
            for weights, bias in hidden:
                rows = relax.op.nn.relu(_layer(relax, rows, weights, bias))
            return _layer(relax, rows, *last)

        folder.mkdir(parents=True, exist_ok=True)
        conformance.save(folder, network, **{self.inputs: ("float32", ("rows", self.width))})

    def load(self, folder: Path) -> Callable[[Arrays], Arrays]:
        tvm: Any = importlib.import_module("tvm")
        vm: Any = importlib.import_module("tvm.runtime.vm")
        module = tvm.runtime.load_module(str(folder / "model.so"))
        function = vm.VirtualMachine(module, tvm.cpu())["main"]

        def run(inputs: Arrays) -> Arrays:
            result = function(tvm.runtime.tensor(inputs[self.inputs]))
            return {self.outputs: np.from_dlpack(result)}

        return run


def _layer(relax: Any, rows: Any, weights: Any, bias: Any) -> Any:
    """Return rows · weights + bias."""
    return relax.op.add(relax.op.matmul(rows, relax.const(weights)), relax.const(bias))


CASES = [TvmMlp()]
