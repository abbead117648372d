"""Forests: the server with backend-fil compared with the libraries that trained them."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.backends.case import Case
from benchmarks.models.sample import Arrays


class ForestCase(Case):
    """A forest; its rows are the rows of its training, repeated."""

    backend = "fil"
    most = 1024
    more = (
        'parameters { key: "predict_proba" value: { string_value: "true" } }\n'
        'parameters { key: "cpu_nthread" value: { string_value: "1" } }\n'
    )
    inputs, outputs = "input__0", "output__0"

    def data(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Return (rows FP32[n, width], classes)."""
        raise NotImplementedError

    def rows(self, count: int) -> np.ndarray[Any, Any]:
        known = self.data()[0]
        return np.ascontiguousarray(np.tile(known, (-(-count // len(known)), 1))[:count])


class XgboostForest(ForestCase):
    """Tumours, two classes: 200 trees of depth 6."""

    name = "fil_xgboost"
    package = "xgboost"
    width, results = 30, 2

    def data(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        found = _library("sklearn.datasets").load_breast_cancer()
        return found.data.astype(np.float32), found.target

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        made = _library("xgboost").XGBClassifier(
            n_estimators=200, max_depth=6, learning_rate=0.05, n_jobs=1
        )
        made.fit(*self.data()).get_booster().save_model(str(folder / "xgboost.json"))

    def load(self, folder: Path) -> Callable[[Arrays], Arrays]:
        booster = _library("xgboost").Booster(
            {"nthread": 1}, model_file=str(folder / "xgboost.json")
        )

        def run(inputs: Arrays) -> Arrays:
            ones = booster.inplace_predict(inputs[self.inputs])
            return {self.outputs: np.stack([1 - ones, ones], axis=1)}

        return run


class LightgbmForest(ForestCase):
    """Handwritten digits, ten classes: 1,000 trees of at most 31 leaves."""

    name = "fil_lightgbm"
    package = "lightgbm"
    width, results = 64, 10

    def data(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        found = _library("sklearn.datasets").load_digits()
        return found.data.astype(np.float32), found.target

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        made = _library("lightgbm").LGBMClassifier(n_estimators=100, n_jobs=1, verbose=-1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made.fit(*self.data()).booster_.save_model(str(folder / "model.txt"))

    def load(self, folder: Path) -> Callable[[Arrays], Arrays]:
        booster = _library("lightgbm").Booster(model_file=str(folder / "model.txt"))

        def run(inputs: Arrays) -> Arrays:
            found = booster.predict(inputs[self.inputs], num_threads=1)
            return {self.outputs: found.astype(np.float32)}

        return run


def _library(name: str) -> Any:
    """Import a module that ships no types."""
    return importlib.import_module(name)


CASES = [XgboostForest(), LightgbmForest()]
