"""NAME models. `core.backend` says when each method is called, and on which thread."""

import json
from collections.abc import Mapping
from typing import Any

import core


class Model(core.Model):
    """One loaded version. This one reads a factor from model.json in the version's folder."""

    factor: float

    def load(self) -> None:
        self.factor = json.loads(self.file("model.json").read_text())["factor"]


class Instance(core.ModelInstance):
    """One worker of a version."""

    model: Model

    def execute(self, batch: core.Batch) -> Mapping[str, Any]:
        """x: FP32[rows, n] of all requests → y: FP32[rows, n]; core splits the rows again."""
        return {"y": batch["x"] * self.model.factor}


backend = core.Backend(model=Model, instance=Instance)
