"""TopK: the scores of all classes ─► the best classes, with their labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from backend_image.labels import labels_of, read_labels
from backend_image.options import Options
from backend_image.stage import Outputs, Stage, Tensor
from core import dtypes
from core.batch import Batch

SCORES, CLASSES, LABELS = "scores", "classes", "labels"


class TopK(Stage):
    """Of equal scores, the class with the smaller number comes first."""

    is_short = True

    def __init__(self, options: Options, folder: Path):
        self._input = options.text("input", SCORES)
        self._count = options.count("k", 5, 1, 100_000)
        self._softmax = options.flag("softmax", False)
        self._labels = read_labels(folder, options)
        self.inputs = (Tensor(self._input, dtypes.FP32, (-1,)),)
        outputs = [
            Tensor(SCORES, dtypes.FP32, (self._count,)),
            Tensor(CLASSES, dtypes.INT32, (self._count,)),
        ]
        if self._labels is not None:
            outputs.append(Tensor(LABELS, dtypes.BYTES, (self._count,)))
        self.outputs = outputs

    def execute(self, batch: Batch) -> Outputs:
        found = batch[self._input]
        scores = found if self.batched else found[None]
        if scores.shape[1] < self._count:
            raise self.refused(
                f"'{self._input}' has {scores.shape[1]} classes, fewer than the {self._count} of 'k' in "
                "image.json"
            )
        if self._softmax:
            scores = softmax(scores)
        best = np.argsort(-scores, axis=1, kind="stable")[:, : self._count]
        outputs = {
            SCORES: np.take_along_axis(scores, best, axis=1),
            CLASSES: best.astype(np.int32),
        }
        if self._labels is not None:
            outputs[LABELS] = labels_of(best, self._labels)
        return outputs if self.batched else {name: array[0] for name, array in outputs.items()}


def softmax(scores: np.ndarray) -> np.ndarray:
    """Return the softmax of FP32[rows, classes] along the classes. Large scores do not overflow."""
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))
