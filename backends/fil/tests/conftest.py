"""Train small forests, and serve them."""

import logging
import os
from contextlib import ExitStack
from types import SimpleNamespace

os.environ.setdefault("OMP_NUM_THREADS", "1")  # of the libraries that compute the expected results

import lightgbm
import numpy as np
import pytest
import xgboost
from backend_fil import backend
from backend_fil.files import FILENAMES
from backend_fil.reading import describe, read_forest
from core_testing.served import Served
from sklearn import datasets

TREES = 12


def tumours():
    """Return data of two classes: rows FP32[569, 30], classes."""
    data = datasets.load_breast_cancer()
    return data.data.astype(np.float32), data.target


def wines():
    """Return data of three classes: rows FP32[178, 13], classes."""
    data = datasets.load_wine()
    return data.data.astype(np.float32), data.target


def with_gaps(rows, share=0.2):
    """Return a copy in which a share of the values is missing."""
    rows = rows.copy()
    rows[np.random.default_rng(7).random(rows.shape) < share] = np.nan
    return rows


def xgboost_of(rows, labels, trees=TREES, **parameters):
    """Train a Booster of XGBoost; the default objective is reg:squarederror."""
    matrix = xgboost.DMatrix(
        rows,
        label=labels,
        feature_types=parameters.pop("feature_types", None),
        enable_categorical=True,
    )
    return xgboost.train({"nthread": 1, "max_depth": 4, **parameters}, matrix, trees)


def lightgbm_of(rows, labels, trees=TREES, categorical="auto", **parameters):
    """Train a Booster of LightGBM; the default objective is regression."""
    data = lightgbm.Dataset(rows, label=labels, categorical_feature=categorical)
    quiet = {"verbose": -1, "num_threads": 1, "num_leaves": 15, "min_data_in_leaf": 5}
    return lightgbm.train({**quiet, **parameters}, data, trees)


def forest_of(model, form="values", link=None, **options):
    """Return the native forest of a treelite model."""
    description = describe(model, "m")
    read = {"threshold": 0.5, "with_cover": False, **options}
    return read_forest(model, description, "m", link=link or description.link, form=form, **read)


def walked(forest, rows):
    """Return the answers of a native forest."""
    rows = np.ascontiguousarray(rows, np.float32)
    out = np.empty((len(rows), forest.width), np.float32)
    forest.predict(rows, out, 0, len(rows))
    return out


def parameters(**values):
    """Return the text of parameters for a config.pbtxt."""
    return "\n".join(
        f'parameters {{ key: "{name}" value {{ string_value: "{value}" }} }}'
        for name, value in values.items()
    )


def save(model, folder):
    """Write a Booster of either library or a treelite model under the file name of its kind."""
    if isinstance(model, xgboost.Booster):
        model.save_model(folder / FILENAMES["xgboost_ubj"])
    elif isinstance(model, lightgbm.Booster):
        model.save_model(folder / FILENAMES["lightgbm"])
    else:
        model.serialize(folder / FILENAMES["treelite_checkpoint"])


@pytest.fixture(scope="session")
def forests():
    """The functions above, for tests."""
    return SimpleNamespace(
        tumours=tumours,
        wines=wines,
        with_gaps=with_gaps,
        xgboost=xgboost_of,
        lightgbm=lightgbm_of,
        compiled=forest_of,
        walked=walked,
        save=save,
    )


@pytest.fixture
def serve(tmp_path):
    """serve(model, config="", settings=None, **parameters): serve a model named m.

    model      a Booster of either library, a treelite model, or a function that fills the version's folder
    config     text of config.pbtxt beside `backend` and the parameters
    settings   of --backend-config
    """
    with ExitStack() as running:

        def start(model, config="", settings=None, **values):
            folder = tmp_path / "models" / "m" / "1"
            folder.mkdir(parents=True)
            if callable(model):
                model(folder)
            else:
                save(model, folder)
            text = f'backend: "fil"\n{config}\n{parameters(**values)}'
            (folder.parent / "config.pbtxt").write_text(text)
            served = running.enter_context(
                Served(backend, tmp_path / "models", backend_config={"fil": settings or {}})
            )
            served.load("m")
            return Asked(served)

        yield start


class Asked:
    """The served model m."""

    def __init__(self, served):
        self.served = served

    def __call__(self, rows, outputs=("output__0",)):
        """Return the first output, or all of `outputs` by name if there are several."""
        found = self.served.ask({"input__0": np.asarray(rows, np.float32)}, outputs, "m")
        return found[outputs[0]] if len(outputs) == 1 else found

    @property
    def config(self):
        return self.served.config("m")


@pytest.fixture
def warnings_of(caplog):
    """Return a function that returns the WARNING lines so far."""
    caplog.set_level(logging.WARNING, "core")
    return lambda: [each.message for each in caplog.records if each.levelno == logging.WARNING]
