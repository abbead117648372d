"""Affine models: y = x · weights + bias. The example of docs/write/write-a-backend.md."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import core
from core.backend import BatchRule
from core.config import ModelConfig
from core.dtypes import FP32
from core.errors import invalid

FILE = "affine.npz"
MOST = "most_numbers"


class Affine(core.Model):
    """One version of a model: what its instances share."""

    weights: np.ndarray
    bias: np.ndarray
    most: int

    def load(self) -> None:
        self.weights, self.bias = read(self.file(FILE))
        self.most = most_numbers(self)

    def batch_rule(self) -> BatchRule:
        """Return a rule that limits the numbers of a batch to those that the parameter allows."""
        left = self.most

        def fits(request: core.InferenceRequest) -> bool:
            nonlocal left
            left -= request.inputs["x"].count
            return left >= 0

        return fits


class Multiply(core.ModelInstance):
    """One execution slot of a model."""

    model: Affine

    def execute(self, batch: core.Batch) -> Mapping[str, Any]:
        """x: FP32[rows, n] → y: FP32[rows, m]"""
        return {"y": batch["x"] @ self.model.weights + self.model.bias}


def most_numbers(model: core.Model) -> int:
    """Return the value of the parameter. Raises CoreError(INVALID) if it is not a number."""
    text = model.parameter(MOST, "1000000")
    if not text.isdecimal():
        raise invalid(f"model '{model.name}': parameter '{MOST}' is '{text}', it must be a number")
    return int(text)


def read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return weights FP32[n, m] and bias FP32[m]. Raises CoreError(INVALID) that names the file."""
    with np.load(path) as arrays:
        if missing := {"weights", "bias"} - set(arrays):
            raise invalid(
                f"'{path}' has no {' and no '.join(sorted(missing))}, only {list(arrays)}"
            )
        weights, bias = (arrays[name].astype(np.float32) for name in ("weights", "bias"))
    if weights.ndim != 2 or bias.shape != weights.shape[1:]:
        raise invalid(
            f"'{path}': weights of shape {weights.shape} need a bias of shape "
            f"{weights.shape[1:]}, not {bias.shape}"
        )
    return weights, bias


def complete(config: ModelConfig, path: Path, backend: core.Backend) -> None:
    """Write into the configuration what the file says and config.pbtxt does not."""
    weights, _ = read(path / (config.default_model_filename or FILE))
    if not config.max_batch_size:
        config.max_batch_size = 64
    if not config.input:
        config.input.add(name="x", data_type=FP32.number, dims=[weights.shape[0]])
    if not config.output:
        config.output.add(name="y", data_type=FP32.number, dims=[weights.shape[1]])


backend = core.Backend(
    model=Affine, instance=Multiply, complete=complete, known_parameters=(MOST,), known_settings=()
)
