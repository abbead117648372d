"""NAME models. `core.backend` says when each method is called, and on which thread."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import core
from core.config import ModelConfig
from core.dtypes import FP32
from core.errors import invalid

FILE = (
    "NAME.json"  # pyproject.toml claims this name: a model with such a file needs no config.pbtxt
)


class Model(core.Model):
    """One loaded version. This one reads a factor from NAME.json in the version's folder."""

    factor: float

    def load(self) -> None:
        self.factor = read(self.file(FILE))


class Instance(core.ModelInstance):
    """One execution slot of a version."""

    model: Model

    def execute(self, batch: core.Batch) -> Mapping[str, Any]:
        """x: FP32[rows, n] of all requests → y: FP32[rows, n]; core splits the rows again."""
        return {"y": batch["x"] * self.model.factor}


def read(path: Path) -> float:
    """Return the factor of a file. Raises CoreError(INVALID) for a file without one."""
    try:
        return float(json.loads(path.read_text())["factor"])
    except (ValueError, KeyError, TypeError) as error:
        raise invalid(f"'{path}' is not like {{\"factor\": 0.5}}: {error!r}") from error


def complete(config: ModelConfig, path: Path, backend: core.Backend) -> None:
    """Write into the configuration what the model's file says and config.pbtxt does not."""
    if not config.max_batch_size:
        config.max_batch_size = 64
    if not config.input:
        config.input.add(name="x", data_type=FP32.number, dims=[-1])
    if not config.output:
        config.output.add(name="y", data_type=FP32.number, dims=[-1])


backend = core.Backend(model=Model, instance=Instance, complete=complete)
