"""Models of xgboost and LightGBM, from their own file formats. These contain no code and need no trust."""

from __future__ import annotations

import json
import os
from typing import Any

from backend_python.api.errors import TritonModelException

from core_adapters import table
from core_adapters.described import Described
from core_adapters.needed import needed
from core_adapters.scikit import Estimator
from core_adapters.tabular import Properties

_LIGHTGBM_BEGINS = b"tree\n"


def open_file(config: Properties, file: str) -> Estimator:
    """Return the booster in a file of either library. Raises TritonModelException for an invalid file."""
    with open(file, "rb") as stream:
        begin = stream.read(len(_LIGHTGBM_BEGINS) + 1).replace(b"\r", b"")
    if begin.startswith(_LIGHTGBM_BEGINS):
        return open_lightgbm(config, file)
    if file.endswith(".txt"):
        raise TritonModelException(
            f"'{file}' is no model of LightGBM: the text that Booster.save_model writes begins with 'tree'"
        )
    return open_xgboost(config, file)


def open_xgboost(config: Properties, file: str) -> Estimator:
    """Return the model in a file of xgboost: an XGBClassifier if one was saved, else an XGBRegressor.

    `predict` of an XGBRegressor returns the booster's output. Raises TritonModelException for another file.
    """
    why = f"reading '{os.path.basename(file)}'"
    xgboost = needed("xgboost", "xgboost", why)
    needed("sklearn", "scikit-learn", why)
    booster = xgboost.Booster()
    try:
        booster.load_model(file)
    except xgboost.core.XGBoostError as error:
        raise TritonModelException(
            f"'{file}' is no model of xgboost: {str(error).strip().splitlines()[-1]}"
        ) from None
    kind = json.loads(booster.attr("scikit_learn") or "{}").get("_estimator_type", "")
    estimator = xgboost.XGBClassifier() if kind == "classifier" else xgboost.XGBRegressor()
    estimator.load_model(file)
    return Booster(estimator, booster.num_features(), booster.feature_names or [], "TYPE_FP32")


def open_lightgbm(config: Properties, file: str) -> Estimator:
    """Return the booster in a file of LightGBM. If it is a classifier, `predict` returns probabilities.

    Raises TritonModelException for an invalid file.
    """
    lightgbm = needed("lightgbm", "lightgbm", f"reading '{os.path.basename(file)}'")
    try:
        booster = lightgbm.Booster(model_file=file)
    except lightgbm.basic.LightGBMError as error:
        raise TritonModelException(f"'{file}' is no model of LightGBM: {error}") from None
    return Booster(_Predict(booster), booster.num_feature(), booster.feature_name(), "TYPE_FP64")


class Booster(Estimator):
    """An estimator whose library reports the number and names of its features."""

    def __init__(self, estimator: Any, features: int, names: list[str], number: str):
        super().__init__(estimator, number)
        self._names = list(names)
        self._features = features

    def inputs(self, config: Properties) -> list[Described]:
        return [Described("X", self._number, [self._features])]

    def compute(self, inputs: table.Inputs, wanted: list[str]) -> dict[str, Any]:
        # Both libraries accept a plain array without names, and a data frame for each batch takes time.
        features = table.table(inputs, self._names if len(inputs) > 1 else [])
        return {name: getattr(self._estimator, name)(features) for name in wanted}


class _Predict:
    """Exposes only `predict` of a LightGBM booster, so that no other method becomes an output."""

    def __init__(self, booster: Any):
        self.predict = booster.predict
