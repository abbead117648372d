"""A backend: a model is a file clip.json, such as {"low": 0, "high": 6}, and limits numbers to that range."""

import json

import numpy as np

import core
from core.errors import invalid

FP32 = 11  # DataType.TYPE_FP32 of model_config.proto


class Clip(core.Model):
    """One version of a model: what its instances share."""

    def load(self):
        self.low, self.high = read(self.file("clip.json"))


class ClipInstance(core.ModelInstance):
    """One execution slot of a version."""

    def execute(self, batch):
        """x: FP32[rows, n] of several requests → y: FP32[rows, n]; core gives each request its rows."""
        return {"y": np.clip(batch["x"], self.model.low, self.model.high)}


def read(path):
    """Return both limits. Raise CoreError(INVALID) for a file without them."""
    try:
        limits = json.loads(path.read_text())
        return float(limits["low"]), float(limits["high"])
    except (ValueError, KeyError, TypeError) as error:
        raise invalid(f'\'{path}\' is not like {{"low": 0, "high": 6}}: {error!r}') from error


def complete(config, path, backend):
    """Add to the configuration what each model of this backend has, so that none needs a config.pbtxt."""
    config.max_batch_size = config.max_batch_size or 64
    if not config.input:
        config.input.add(name="x", data_type=FP32, dims=[-1])
    if not config.output:
        config.output.add(name="y", data_type=FP32, dims=[-1])


backend = core.Backend(model=Clip, instance=ClipInstance, complete=complete)
