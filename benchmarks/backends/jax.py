"""JAX: the MLP of the other benchmarks, exported."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.backends.case import Case
from benchmarks.models import mlp
from benchmarks.models.sample import Arrays


class JaxMlp(Case):
    name = "jax_mlp"
    backend = "jax"
    package = "jax"
    width, results = mlp.SIZES[0], mlp.SIZES[-1]
    most = 1024

    def write(self, folder: Path) -> None:
        jax: Any = importlib.import_module("jax")
        export: Any = importlib.import_module("jax.export")
        *hidden, last = mlp.layers()

        def network(**inputs: Any) -> Any:
            rows = inputs[self.inputs]
            for weights, bias in hidden:
                rows = jax.nn.relu(rows @ weights + bias)
            return {self.outputs: rows @ last[0] + last[1]}

        (count,) = export.symbolic_shape("rows")
        given = {self.inputs: jax.ShapeDtypeStruct((count, self.width), np.float32)}
        folder.mkdir(parents=True, exist_ok=True)
        content = export.export(jax.jit(network))(**given).serialize()
        (folder / "model.jax").write_bytes(content)

    def load(self, folder: Path) -> Callable[[Arrays], Arrays]:
        """Return the exported function, which is compiled at the first run of each number of rows."""
        jax: Any = importlib.import_module("jax")
        export: Any = importlib.import_module("jax.export")
        content = bytearray((folder / "model.jax").read_bytes())
        forward = jax.jit(export.deserialize(content).call)

        def run(inputs: Arrays) -> Arrays:
            found = forward(**{self.inputs: inputs[self.inputs]})
            return {self.outputs: np.asarray(found[self.outputs])}

        return run


CASES = [JaxMlp()]
