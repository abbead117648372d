"""A forest on a GPU, by nvForest.

Model ─► [gpu] ─► instance.  nvForest is imported when the first instance of kind GPU opens. It returns
probabilities or values. This module converts them to classes by the same rules as on the CPU.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import treelite

from backend_fil.answers import Answers
from backend_fil.settings import Settings
from core.backend import Device
from core.errors import internal, unsupported

_LIBRARY = "nvforest"


class GpuForest:
    """One forest on one GPU."""

    def __init__(self, forest: Any, answers: Answers, threshold: float):
        self._forest = forest
        self._answers = answers
        self._threshold = threshold

    def predict(self, rows: np.ndarray) -> np.ndarray:
        """Return the answers of rows: float32 [n, width]."""
        ask = getattr(self._forest, "predict_proba", None) or self._forest.predict
        found = ask(rows)
        values = np.asarray(found.get() if hasattr(found, "get") else found, np.float32)
        return classes_of(values.reshape(len(rows), -1), self._answers, self._threshold)


def classes_of(values: np.ndarray, answers: Answers, threshold: float) -> np.ndarray:
    """Convert the values of each row to output values: float32 [n, width].

    values   [n, classes]; for a binary classifier, [n, 1] or [n, 2] with both probabilities
    """
    if answers.form == "argmax":
        best: np.ndarray = values.argmax(1)
        return best.astype(np.float32).reshape(-1, 1)
    if answers.form == "values":
        return np.ascontiguousarray(values[:, -answers.width :])
    positive = values[:, -1:]
    if answers.form == "threshold":
        above: np.ndarray = positive > np.float32(threshold)
        return above.astype(np.float32)
    return np.concatenate([1 - positive, positive], 1)


def open_on_gpu(
    model: treelite.Model,
    device: Device,
    settings: Settings,
    answers: Answers,
    threshold: float,
    name: str,
) -> GpuForest:
    """Copy a forest to a GPU.

    threshold   as on the CPU: the parameter, or that of the file
    Raises CoreError(UNSUPPORTED) if nvForest is not installed, and CoreError(INTERNAL) with its error if it
    cannot load the forest.
    """
    try:
        library = importlib.import_module(_LIBRARY)
    except ImportError as error:
        raise unsupported(
            f"model '{name}': an instance on {device} needs nvForest, which cannot be imported ({error}); "
            "install it from NVIDIA (conda: nvforest; pip: nvforest-cu13 or nvforest-cu12, "
            "for the CUDA of this machine), or use instance_group { kind: KIND_CPU }"
        ) from error
    copy = treelite.Model.deserialize_bytes(model.serialize_bytes())
    if answers.link == "softmax":
        copy.get_header_accessor().set_field("postprocessor", "softmax")
    try:
        forest = library.load_from_treelite_model(
            copy,
            device="gpu",
            device_id=device.id,
            layout=settings.layout,
            default_chunk_size=settings.chunk_size or None,
            precision="single",
        )
    except Exception as error:
        version = getattr(library, "__version__", "")
        raise internal(
            f"model '{name}': nvForest {version} cannot place the forest on {device}: {error}; "
            "use instance_group { kind: KIND_CPU }"
        ) from error
    return GpuForest(forest, answers, threshold)
