"""A served forest returns the results of the library that trained it."""

import lightgbm
import numpy as np
import pandas
import pytest
import treelite
import xgboost
from sklearn import ensemble

OBJECTIVES = {
    "binary:logistic": (2, {}),
    "binary:logitraw": (2, {}),
    "binary:hinge": (2, {}),
    "reg:squarederror": (2, {}),
    "reg:logistic": (2, {}),
    "reg:pseudohubererror": (2, {}),
    "reg:gamma": (2, {}),
    "reg:tweedie": (2, {}),
    "count:poisson": (2, {}),
    "rank:pairwise": (2, {}),
    "rank:ndcg": (2, {}),
    "multi:softprob": (3, {"num_class": 3}),
}


def data(forests, classes):
    return forests.tumours() if classes == 2 else forests.wines()


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("gaps", [False, True])
def test_xgboost(serve, forests, objective, gaps):
    classes, more = OBJECTIVES[objective]
    rows, labels = data(forests, classes)
    rows = forests.with_gaps(rows) if gaps else rows
    labels = labels + 1 if objective in ("reg:gamma", "reg:tweedie") else labels
    model = forests.xgboost(rows, labels, objective=objective, **more)

    found = serve(model, is_classifier="false")(rows)

    expected = model.predict(xgboost.DMatrix(rows))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "more",
    [
        {"booster": "dart", "rate_drop": 0.3},
        {"num_parallel_tree": 4, "subsample": 0.7, "learning_rate": 1.0},
        {"grow_policy": "lossguide", "max_leaves": 40, "max_depth": 0},
        {"tree_method": "exact", "max_depth": 9},
        {"base_score": 0.9},
    ],
    ids=lambda more: next(iter(more)),
)
def test_kinds_of_xgboost(serve, forests, more):
    rows, labels = forests.tumours()
    model = forests.xgboost(rows, labels, objective="binary:logistic", **more)

    found = serve(model, predict_proba="true")(rows)

    expected = model.predict(xgboost.DMatrix(rows))
    np.testing.assert_allclose(found[:, 1], expected, rtol=1e-5, atol=1e-6)


def test_xgboost_with_leaves_that_have_a_value_for_each_class(serve, forests):
    rows, labels = forests.wines()
    model = forests.xgboost(
        rows,
        labels,
        objective="multi:softprob",
        num_class=3,
        multi_strategy="multi_output_tree",
    )

    found = serve(model, predict_proba="true")(rows)

    np.testing.assert_allclose(found, model.predict(xgboost.DMatrix(rows)), rtol=1e-5, atol=1e-6)


def categories(seed=0):
    """Return rows with three categorical columns, a numerical one and missing values."""
    random = np.random.default_rng(seed)
    rows = random.integers(0, [3, 40, 90, 7], (600, 4)).astype(np.float32)
    labels = (rows[:, 1] % 7 < 3) ^ (rows[:, 2] % 5 < 2) ^ (rows[:, 3] > 4)
    rows[random.random(rows.shape) < 0.1] = np.nan
    return rows, labels.astype(int)


def test_categories_of_xgboost(serve, forests):
    rows, labels = categories()
    kinds = ["c", "c", "c", "float"]
    model = forests.xgboost(
        rows, labels, objective="binary:logistic", feature_types=kinds, max_cat_to_onehot=4
    )
    unseen = np.array([[5, 95, 300, 1], [-1, 1e9, 2.5, 0]], np.float32)
    asked = np.concatenate([rows, unseen])

    found = serve(model, predict_proba="true")(asked)

    matrix = xgboost.DMatrix(asked, feature_types=kinds, enable_categorical=True)
    np.testing.assert_allclose(found[:, 1], model.predict(matrix), rtol=1e-5, atol=1e-6)


def test_categories_of_lightgbm(serve, forests):
    rows, labels = categories()
    model = forests.lightgbm(rows, labels, objective="binary", categorical=[0, 1, 2])
    unseen = np.array([[5, 95, 300, 1], [-1, 1e9, 2.5, 0]], np.float32)
    asked = np.concatenate([rows, unseen])

    found = serve(model, predict_proba="true")(asked)

    np.testing.assert_allclose(found[:, 1], model.predict(asked), rtol=1e-5, atol=1e-6)


LIGHTGBM = {
    "regression": 2,
    "regression_l1": 2,
    "huber": 2,
    "poisson": 2,
    "quantile": 2,
    "mape": 2,
    "gamma": 2,
    "tweedie": 2,
    "binary": 2,
    "cross_entropy": 2,
    "cross_entropy_lambda": 2,
    "lambdarank": 2,
    "multiclass": 3,
    "multiclassova": 3,
}


@pytest.mark.parametrize("objective", LIGHTGBM)
@pytest.mark.parametrize("gaps", [False, True])
def test_lightgbm(serve, forests, objective, gaps):
    rows, labels = data(forests, LIGHTGBM[objective])
    rows = forests.with_gaps(rows) if gaps else rows
    labels = labels + 1 if objective == "gamma" else labels
    more = {"num_class": 3} if LIGHTGBM[objective] == 3 else {}
    if objective == "lambdarank":
        ranked = lightgbm.Dataset(rows, labels, group=[100, 69, 400])
        quiet = {"verbose": -1, "num_threads": 1, "objective": objective}
        model = lightgbm.train(quiet, ranked, 8)
    else:
        model = forests.lightgbm(rows, labels, objective=objective, **more)

    found = serve(model, is_classifier="false")(rows)

    np.testing.assert_allclose(found, model.predict(rows), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize(
    "more",
    [
        {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.7},
        {"boosting": "dart"},
        {"use_missing": False},
        {"sigmoid": 2.5},
        {"max_depth": 3, "num_leaves": 100},
    ],
    ids=lambda more: next(iter(more)),
)
def test_kinds_of_lightgbm(serve, forests, more):
    rows, labels = forests.tumours()
    rows = forests.with_gaps(rows)
    model = forests.lightgbm(rows, labels, objective="binary", **more)

    found = serve(model, predict_proba="true")(rows)

    np.testing.assert_allclose(found[:, 1], model.predict(rows), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "kind",
    [
        ensemble.RandomForestClassifier,
        ensemble.ExtraTreesClassifier,
        ensemble.GradientBoostingClassifier,
        ensemble.HistGradientBoostingClassifier,
    ],
)
def test_classifiers_of_scikit_learn(serve, forests, kind, classes):
    rows, labels = data(forests, classes)
    size = (
        {"max_iter": 8} if kind is ensemble.HistGradientBoostingClassifier else {"n_estimators": 8}
    )
    model = kind(random_state=0, **size).fit(rows, labels)

    found = serve(treelite.sklearn.import_model(model), predict_proba="true")(rows)

    np.testing.assert_allclose(found, model.predict_proba(rows), rtol=1e-5, atol=1e-6)


def test_a_forest_trained_on_one_class(serve, forests):
    rows, labels = forests.tumours()
    model = ensemble.RandomForestClassifier(5).fit(rows, np.zeros_like(labels))

    found = serve(treelite.sklearn.import_model(model), is_classifier="false")(rows)

    assert found.tolist() == model.predict_proba(rows)[:, 0].tolist()


@pytest.mark.parametrize(
    "kind",
    [
        ensemble.RandomForestRegressor,
        ensemble.ExtraTreesRegressor,
        ensemble.GradientBoostingRegressor,
        ensemble.HistGradientBoostingRegressor,
    ],
)
def test_regressors_of_scikit_learn(serve, forests, kind):
    rows, labels = forests.wines()
    size = (
        {"max_iter": 8} if kind is ensemble.HistGradientBoostingRegressor else {"n_estimators": 8}
    )
    model = kind(random_state=0, **size).fit(rows, labels)

    found = serve(treelite.sklearn.import_model(model))(rows)

    np.testing.assert_allclose(found, model.predict(rows), rtol=1e-5, atol=1e-6)


def test_an_isolation_forest_of_scikit_learn(serve, forests):
    rows, _ = forests.tumours()
    model = ensemble.IsolationForest(n_estimators=10, random_state=0).fit(rows)

    found = serve(treelite.sklearn.import_model(model))(rows)

    np.testing.assert_allclose(found, -model.score_samples(rows), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 0.0, 3.4e38])
def test_special_float32_values_go_to_the_child_of_the_library(serve, forests, value):
    rows, labels = forests.tumours()
    model = forests.lightgbm(forests.with_gaps(rows), labels, objective="binary")
    asked = rows[:30].copy()
    np.fill_diagonal(asked, value)

    found = serve(model, predict_proba="true")(asked)

    np.testing.assert_allclose(found[:, 1], model.predict(asked), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("form", ["json", "ubj"])
@pytest.mark.parametrize("booster", ["gbtree", "dart"])
def test_named_categories_are_given_by_number(serve, form, booster, caplog):
    rows, labels = categories()
    frame = pandas.DataFrame({f"f{i}": rows[:, i] for i in range(4)})
    for column, names in (("f0", ["green", "red", "white"]), ("f1", range(100, 140))):
        codes = np.nan_to_num(rows[:, int(column[1])], nan=-1).astype(int)
        frame[column] = pandas.Categorical.from_codes(codes, categories=list(names))
    matrix = xgboost.DMatrix(frame, labels, enable_categorical=True)
    settings = {"objective": "binary:logistic", "booster": booster, "max_cat_to_onehot": 4}
    model = xgboost.train(settings, matrix, 12)

    with caplog.at_level("INFO", "core"):
        model_of = serve(
            lambda folder: model.save_model(folder / f"xgboost.{form}"), predict_proba="true"
        )
    found = model_of(rows)

    np.testing.assert_allclose(found[:, 1], model.predict(matrix), rtol=1e-5, atol=1e-6)
    assert "feature 0: 0 green, 1 red, 2 white; feature 1: 0 100, 1 101" in caplog.text
