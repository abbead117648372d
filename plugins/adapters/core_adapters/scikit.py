"""scikit-learn: estimators with `predict` or `transform`, from a pickle or a skops file."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np
from backend_python.api.errors import TritonModelException

from core_adapters import table, trust
from core_adapters.described import Described
from core_adapters.fitting import as_array, data_type_of
from core_adapters.formats import SKOPS
from core_adapters.needed import needed
from core_adapters.tabular import Predictor, Properties

METHODS = (
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "score_samples",
    "transform",
)


def open_file(config: Properties, file: str) -> Estimator:
    """Return the estimator in a file.

    Raises TritonModelException if the file is not trusted, contains no estimator, or a library is missing.
    """
    library = _read_skops if file.endswith(SKOPS) else _read_pickle
    found = library(config, file)
    if not any(callable(getattr(found, method, None)) for method in METHODS):
        raise TritonModelException(
            f"'{file}' holds a {type(found).__module__}.{type(found).__qualname__}, which has neither "
            "predict nor transform"
        )
    return Estimator(found)


def _read_pickle(config: Properties, file: str) -> Any:
    trust.check_pickle(config, file)
    name = os.path.basename(file)
    joblib = needed("joblib", "scikit-learn", f"reading '{name}'")
    try:
        return joblib.load(file)
    except ModuleNotFoundError as error:
        raise TritonModelException(
            f"'{file}' was written with the module '{error.name}', which is not there where the model "
            "runs: install it, or put it beside the file"
        ) from error


def _read_skops(config: Properties, file: str) -> Any:
    io = needed("skops.io", "skops", f"reading '{os.path.basename(file)}'")
    unknown = list(io.get_untrusted_types(file=file))
    return io.load(file, trusted=trust.trusted_types(config, file, unknown))


class Estimator(Predictor):
    """An estimator of scikit-learn; each of its METHODS can be an output.

    number   datatype of numeric inputs if config.pbtxt has no inputs
    """

    def __init__(self, estimator: Any, number: str = "TYPE_FP64"):
        self._estimator = estimator
        self._number = number
        self._names = [str(name) for name in getattr(estimator, "feature_names_in_", ())]

    def inputs(self, config: Properties) -> list[Described]:
        if (columns := _columns(self._estimator)) is not None and self._names:
            return [
                Described(name, _type_of(columns, name, self._number), [1]) for name in self._names
            ]
        if _takes_texts(self._estimator):
            return [Described("X", "TYPE_STRING", [1])]
        features = getattr(self._estimator, "n_features_in_", -1)
        return [Described("X", self._number, [int(features)])]

    def outputs(self, config: Properties) -> list[Described]:
        methods = ["predict", "predict_proba"] if self._has("predict") else ["transform"]
        return [self._output(method, config) for method in methods if self._has(method)]

    def check(self, outputs: list[str]) -> None:
        for name in outputs:
            if name not in METHODS or not self._has(name):
                can = ", ".join(method for method in METHODS if self._has(method))
                raise TritonModelException(
                    f"output '{name}': a {type(self._estimator).__name__} can be asked for {can}"
                )

    def compute(self, inputs: table.Inputs, wanted: list[str]) -> dict[str, Any]:
        features = table.table(inputs, self._names)
        if _takes_texts(self._estimator):
            features = as_array(features).reshape(-1)
        return {name: getattr(self._estimator, name)(features) for name in wanted}

    def _has(self, method: str) -> bool:
        return callable(getattr(self._estimator, method, None))

    def _output(self, method: str, config: Properties) -> Described:
        """Describe an output from the method's result for a row of zeros; if that fails, from `classes_`."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                array = as_array(self.compute(self._row(config), [method])[method])
        except Exception:
            classes = as_array(getattr(self._estimator, "classes_", np.zeros(0)))
            if method == "predict":
                return Described(method, data_type_of(classes), [1])
            return Described(method, "TYPE_FP64", [len(classes) or -1])
        return Described(method, data_type_of(array), list(array.shape[1:]) or [1])

    def _row(self, config: Properties) -> table.Inputs:
        """Return one row for the inputs of config.pbtxt, else of the model: "" for texts, 0 for numbers."""
        configured = [(each["name"], each["data_type"], each["dims"]) for each in config["input"]]
        row: table.Inputs = {}
        for name, data_type, dims in configured or self.inputs(config):
            size = abs(int(dims[-1])) if dims else 1
            if data_type == "TYPE_STRING":
                row[name] = np.full((1, size), "", np.object_)
            else:
                row[name] = np.zeros((1, size))
        return row


def _columns(estimator: Any) -> Any:
    """Return the ColumnTransformer that is the estimator or its first step; None if there is none.

    For a search over parameters, the estimator is the best one that it has found.
    """
    if hasattr(estimator, "transformers_"):
        return estimator
    if hasattr(estimator, "best_estimator_"):
        return _columns(estimator.best_estimator_)
    for _, step in getattr(estimator, "steps", ()):
        if step is not None and not isinstance(step, str):
            return _columns(step)
    return None


def _type_of(columns: Any, name: str, number: str) -> str:
    """Return the datatype of a column, derived from the fitted attributes of its transformers.

    columns   the ColumnTransformer
    name      of the column
    number    what to return if the attributes show no other datatype
    """
    names = np.asarray(columns.feature_names_in_, np.object_)
    for _, transformer, chosen in columns.transformers_:
        known = [chosen] if isinstance(chosen, str) else list(_named(names, chosen))
        if name not in known:
            continue
        for step in [transformer, *(step for _, step in getattr(transformer, "steps", ()))]:
            if hasattr(step, "vocabulary_"):
                return "TYPE_STRING"
            if hasattr(step, "categories_"):
                return data_type_of(as_array(step.categories_[known.index(name)]))
            if as_array(getattr(step, "statistics_", 0.0)).dtype.kind in "OU":
                return "TYPE_STRING"  # an imputer of texts
    return number


def _named(names: Any, chosen: Any) -> Any:
    """Return the names of the columns that an entry of a ColumnTransformer selects.

    names    of all columns
    chosen   the entry's names, indices, mask or slice
    """
    if not isinstance(chosen, slice):
        array = np.asarray(chosen)
        if array.dtype.kind in "OUS" or not array.size:
            return array
        chosen = array
    return names[chosen]


def _takes_texts(estimator: Any) -> bool:
    """Return whether an estimator, or the first step of a pipeline, takes texts like a TfidfVectorizer."""
    steps = getattr(estimator, "steps", None)
    return hasattr(steps[0][1] if steps else estimator, "build_analyzer")
