"""The header of a file says what treelite says of the whole file."""

from copy import deepcopy
from dataclasses import replace

import lightgbm
import numpy as np
import pytest
import treelite
import xgboost
from backend_fil import backend
from backend_fil.files import load
from backend_fil.headers import Unreadable, header_of
from backend_fil.reading import describe
from backend_fil.static_check import check_version
from sklearn.ensemble import (
    GradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)

from core.config import ModelConfig

ROWS = np.random.default_rng(1).normal(size=(90, 5))
CLASSES = np.arange(90) % 3
BINARY = (CLASSES == 1).astype(int)


def of_xgboost(path, objective, labels, **more):
    parameters = {"objective": objective, "max_depth": 2, "nthread": 1, **more}
    xgboost.train(parameters, xgboost.DMatrix(ROWS, labels), 3).save_model(path)


def of_lightgbm(path, objective, labels, **more):
    parameters = {"objective": objective, "verbose": -1, "num_threads": 1, **more}
    lightgbm.train(parameters, lightgbm.Dataset(ROWS, labels), 3).save_model(path)


def of_sklearn(path, model, labels):
    treelite.sklearn.import_model(model.fit(ROWS, labels)).serialize(path)


FILES = {
    **{
        f"{name}.{suffix}": (f"xgboost_{suffix}", of_xgboost, given)
        for suffix in ("json", "ubj")
        for name, given in {
            "classes": ("multi:softprob", CLASSES, {"num_class": 3}),
            "softmax": ("multi:softmax", CLASSES, {"num_class": 3}),
            "binary": ("binary:logistic", BINARY, {}),
            "raw": ("binary:logitraw", BINARY, {}),
            "hinge": ("binary:hinge", BINARY, {}),
            "numbers": ("reg:squarederror", BINARY, {}),
            "counts": ("count:poisson", CLASSES, {}),
            "ranks": ("rank:pairwise", BINARY, {}),
        }.items()
    },
    **{
        f"{name}.txt": ("lightgbm", of_lightgbm, given)
        for name, given in {
            "classes": ("multiclass", CLASSES, {"num_class": 3}),
            "ova": ("multiclassova", CLASSES, {"num_class": 3}),
            "binary": ("binary", BINARY, {}),
            "numbers": ("regression", BINARY, {}),
            "ranks": ("cross_entropy", BINARY, {}),
        }.items()
    },
    "forest.tl": ("treelite_checkpoint", of_sklearn, (RandomForestClassifier(3), CLASSES, {})),
    "boosted.tl": (
        "treelite_checkpoint", of_sklearn, (GradientBoostingClassifier(n_estimators=3), CLASSES, {})
    ),
    "numbers.tl": ("treelite_checkpoint", of_sklearn, (RandomForestRegressor(3), BINARY, {})),
    "binary.tl": ("treelite_checkpoint", of_sklearn, (RandomForestClassifier(3), BINARY, {})),
}  # fmt: skip


@pytest.fixture(scope="module", params=sorted(FILES))
def file(request, tmp_path_factory):
    kind, make, (*given, more) = FILES[request.param]
    path = tmp_path_factory.mktemp("forest") / request.param
    make(str(path), *given, **more)
    return path, kind


def test_a_header_says_what_treelite_says(file):
    path, kind = file
    expected = describe(load(path, kind, "m", allow_unknown_field=False), "m")

    found = header_of(path, kind)

    assert found is not None
    assert replace(found, link="", trees=0) == replace(expected, link="", trees=0)


@pytest.mark.parametrize("rows", [0, 16])
def test_the_check_completes_a_configuration_like_a_load(file, rows):
    path, kind = file
    loaded = ModelConfig(name="m", max_batch_size=rows, default_model_filename=path.name)
    loaded.parameters["model_type"].string_value = kind
    checked = deepcopy(loaded)

    backend.complete(loaded, path.parent, backend)

    assert check_version(checked, path.parent, backend) is True
    assert checked == loaded


def test_a_file_that_is_cut_off_is_unreadable(file, tmp_path):
    path, kind = file
    half = tmp_path / path.name
    content = path.read_bytes()
    ends = {"treelite_checkpoint": 30, "lightgbm": content.find(b"\nend of trees")}
    half.write_bytes(content[: ends.get(kind, len(content) // 2)])

    with pytest.raises(Unreadable):
        header_of(half, kind)
