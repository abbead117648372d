"""execute: rows ─► forest ─► outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from backend_fil.answers import INPUT, SHAP
from core.backend import ModelInstance
from core.batch import Batch
from core.errors import invalid

if TYPE_CHECKING:
    from backend_fil.backend import FilModel

_SHAP_FACTOR = 50  # Shapley values take about this many times the steps of a prediction


class FilInstance(ModelInstance):
    """Predict rows with the forest of its model, which other instances use at the same time."""

    model: FilModel
    placement = "auto"  # every thread may predict

    def open(self) -> None:
        model = self.model
        self._forest = model.forest
        self._features = model.features
        self._row_shapes = model.row_shapes
        self._names = list(model.row_shapes)
        self._workers = model.workers(self.host_policy.cores)
        self._gpu = model.on_gpu(self.device) if self.device.kind == "GPU" else None
        self._transfer_threshold = model.settings.transfer_threshold

    def execute(self, batch: Batch) -> Mapping[str, Any]:
        rows = self._rows(batch[INPUT])
        outputs: dict[str, Any] = {}
        for name in batch.wanted(self._names):
            found = self._shap(rows) if name == SHAP else self._predict(rows)
            outputs[name] = found.reshape(len(rows), *self._row_shapes[name])
        return outputs

    def _rows(self, array: np.ndarray) -> np.ndarray:
        """Return the rows of a batch as a contiguous, aligned array [n, features].

        Raises CoreError(INVALID) for rows with another number of features.
        """
        if array.ndim != 2 or array.shape[1] != self._features:
            if not array.ndim or (len(array) and array[:1].size != self._features):
                raise invalid(
                    f"model '{self.model.name}': rows of shape {list(array.shape[1:])} for a forest of "
                    f"{self._features} features"
                )
            array = array.reshape(len(array), self._features)
        return np.require(array, np.float32, ("C", "A"))

    def _predict(self, rows: np.ndarray) -> np.ndarray:
        if self._gpu is not None and len(rows) > self._transfer_threshold:
            return self._gpu.predict(rows)
        forest = self._forest
        out = np.empty((len(rows), forest.width), np.float32)
        steps = forest.steps_of_a_row
        self._workers.share(
            len(rows), steps, lambda start, stop: forest.predict(rows, out, start, stop)
        )
        return out

    def _shap(self, rows: np.ndarray) -> np.ndarray:
        forest = self._forest
        out = np.empty((len(rows), forest.classes * (forest.features + 1)), np.float32)
        steps = forest.steps_of_a_row * _SHAP_FACTOR
        self._workers.share(
            len(rows), steps, lambda start, stop: forest.shap(rows, out, start, stop)
        )
        return out

    def close(self) -> None:
        """Release the forest and its copy on the GPU. The model keeps the forest on the CPU."""
        self._forest = self._gpu = None  # type: ignore[assignment]
