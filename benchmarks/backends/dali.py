"""DALI: rows that a pipeline normalises."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.backends.case import Case
from benchmarks.models.sample import Arrays

_DEVIATION = 3.0


class DaliRows(Case):
    name = "dali_rows"
    backend = "dali"
    package = "nvidia.dali"
    outputs = "normalised"
    width = results = 1024
    more = 'parameters { key: "num_threads" value: { string_value: "1" } }\n'

    def write(self, folder: Path) -> None:
        conformance: Any = importlib.import_module("backend_dali.conformance")
        fn: Any = importlib.import_module("nvidia.dali.fn")

        def normalised(rows: Any) -> Any:
            return fn.normalize(rows, mean=0.0, stddev=_DEVIATION, name=self.outputs)

        folder.mkdir(parents=True, exist_ok=True)
        conformance.save(folder, normalised, batch_size=self.most, **{self.inputs: 1})

    def load(self, folder: Path) -> Callable[[Arrays], Arrays]:
        pipelines: Any = importlib.import_module("nvidia.dali.pipeline")
        pipeline = pipelines.Pipeline.deserialize(
            filename=str(folder / "model.dali"),
            num_threads=1,
            device_id=None,
            prefetch_queue_depth=1,
            exec_pipelined=False,
            exec_async=False,
        )

        def run(inputs: Arrays) -> Arrays:
            pipeline.feed_input(self.inputs, inputs[self.inputs])
            (found,) = pipeline.run()
            return {self.outputs: found.as_array()}

        return run


CASES = [DaliRows()]
