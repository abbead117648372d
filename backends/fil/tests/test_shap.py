"""Shapley values of the margins are those of the libraries."""

import numpy as np
import pytest
import treelite
import xgboost
from sklearn import ensemble

from core.errors import CoreError

BOTH = 'output [{ name: "output__0" }, { name: "treeshap_output" }]'
NAMES = ("output__0", "treeshap_output")


@pytest.mark.parametrize("gaps", [False, True])
def test_of_xgboost(serve, forests, gaps):
    rows, labels = forests.tumours()
    rows = forests.with_gaps(rows)[:120] if gaps else rows[:120]
    model = forests.xgboost(rows, labels[:120], objective="binary:logistic", max_depth=6)

    found = serve(model, BOTH)(rows, NAMES)

    expected = model.predict(xgboost.DMatrix(rows), pred_contribs=True)
    assert found["treeshap_output"].shape == (len(rows), 31)
    np.testing.assert_allclose(found["treeshap_output"], expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(found["output__0"], expected.sum(1) > 0)


def test_of_several_classes(serve, forests):
    rows, labels = forests.wines()
    model = forests.xgboost(rows, labels, objective="multi:softprob", num_class=3)

    found = serve(model, BOTH)(rows[:40], NAMES)["treeshap_output"]

    expected = model.predict(xgboost.DMatrix(rows[:40]), pred_contribs=True)
    assert found.shape == (40, 3, 14)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("classes", [2, 3])
def test_of_lightgbm(serve, forests, classes):
    rows, labels = forests.tumours() if classes == 2 else forests.wines()
    more = {"objective": "multiclass", "num_class": 3} if classes == 3 else {"objective": "binary"}
    rows = forests.with_gaps(rows)
    model = forests.lightgbm(rows, labels, **more)

    found = serve(model, BOTH)(rows[:40], NAMES)["treeshap_output"]

    expected = model.predict(rows[:40], pred_contrib=True).reshape(found.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_values_of_a_random_forest_sum_to_its_probabilities(serve, forests):
    rows, labels = forests.wines()
    model = ensemble.RandomForestClassifier(8, random_state=0).fit(rows, labels)

    found = serve(treelite.sklearn.import_model(model), BOTH)(rows[:30], NAMES)["treeshap_output"]

    assert found.shape == (30, 3, 14)
    np.testing.assert_allclose(found.sum(2), model.predict_proba(rows[:30]), rtol=1e-4, atol=1e-5)


def test_they_are_not_computed_if_not_requested(serve, forests, monkeypatch):
    rows, labels = forests.tumours()
    served = serve(forests.xgboost(rows, labels, objective="binary:logistic"), BOTH)
    monkeypatch.setattr("backend_fil.instance.FilInstance._shap", None)

    assert served(rows[:5]).shape == (5,)


def test_trees_that_are_too_deep_are_refused(serve, forests):
    rows = np.arange(100, dtype=np.float32)[:, None]
    model = ensemble.RandomForestRegressor(1, bootstrap=False).fit(rows, 1.5 ** rows[:, 0])

    with pytest.raises(CoreError, match=r"too deep for 'treeshap_output', which has a bound of 32"):
        serve(treelite.sklearn.import_model(model), BOTH)


def test_a_forest_without_statistics_is_refused(serve, forests):
    rows, labels = forests.tumours()
    model = treelite.frontend.from_xgboost(forests.xgboost(rows, labels))
    for i in range(model.num_tree):
        tree = model.get_tree_accessor(i)
        tree.get_field("sum_hess_present")[:] = 0

    with pytest.raises(CoreError, match="tree 0 does not say how many rows of the training"):
        serve(model, BOTH)
