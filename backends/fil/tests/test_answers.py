"""Responses: classes, probabilities or values, and their shapes."""

import numpy as np
import pytest
import treelite
from backend_fil.answers import Answers
from backend_fil.gpu import classes_of
from sklearn import ensemble

from core.errors import CoreError, Kind

BATCHING = 'max_batch_size: 1000 input [{ name: "input__0" data_type: TYPE_FP32 dims: [ 30 ] }]'


def output(*dims):
    return f'output [{{ name: "output__0" data_type: TYPE_FP32 dims: {list(dims)} }}]'


@pytest.fixture
def binary(forests):
    rows, labels = forests.tumours()
    return forests.xgboost(rows, labels, objective="binary:logistic"), rows


@pytest.fixture
def three_classes(forests):
    rows, labels = forests.wines()
    return forests.xgboost(rows, labels, objective="multi:softmax", num_class=3), rows


def test_a_binary_classifier_returns_the_class(serve, binary):
    model, rows = binary

    found = serve(model, is_classifier="true")(rows)

    assert found.shape == (len(rows),)
    np.testing.assert_array_equal(found, model.inplace_predict(rows) > 0.5)


@pytest.mark.parametrize("parameter", ["is_classifier", "output_class"])
def test_only_a_value_above_the_threshold_is_class_1(serve, forests, parameter):
    rows, labels = forests.tumours()
    model = forests.xgboost(rows, labels, trees=1, max_depth=1, objective="binary:logitraw")
    margins = model.inplace_predict(rows)
    reached = margins.max()

    found = serve(model, threshold=repr(float(reached)), **{parameter: "true"})(rows)

    assert not found.any()
    assert (margins == reached).any()


@pytest.mark.parametrize("threshold", ["0.1", "0.9", "1", "-1"])
def test_the_parameter_sets_the_threshold(serve, binary, threshold):
    model, rows = binary

    found = serve(model, threshold=threshold)(rows)

    np.testing.assert_array_equal(found, model.inplace_predict(rows) > float(threshold))


def test_the_threshold_is_a_float32_like_the_compared_values(serve, forests):
    """0.1 as float32 is above 0.1 as double. Triton compares float32 with float32, so 0.1 is not above."""
    rows = np.array([[0], [1]], np.float32)
    more = {"reg_lambda": 0, "learning_rate": 1.0, "base_score": 0, "min_child_weight": 0}
    model = forests.xgboost(rows, [0, 0.1], trees=1, max_depth=1, **more)
    assert model.inplace_predict(rows).tolist() == [0, np.float32(0.1)]

    found = serve(model, is_classifier="true", threshold="0.1")(rows)

    assert found.tolist() == [0, 0]


def test_a_value_of_a_regressor_does_not_become_a_pair(serve, forests):
    rows, labels = forests.tumours()
    model = forests.xgboost(rows, labels * 20.0)

    found = serve(model, predict_proba="true")(rows)

    assert found.shape == (len(rows),)
    np.testing.assert_allclose(found, model.inplace_predict(rows), rtol=1e-5, atol=1e-5)


def test_probabilities_of_a_model_without_them_are_refused_if_dims_require_them(serve, forests):
    rows, labels = forests.tumours()

    with pytest.raises(
        CoreError, match=r"dims \[2\] .* answers 1 value .* \(no classifier; parameter 'is_cl"
    ):
        serve(forests.xgboost(rows, labels), f"{BATCHING} {output(2)}", predict_proba="true")


def test_probabilities_of_a_binary_classifier_come_in_pairs(serve, binary):
    model, rows = binary

    found = serve(model, f"{BATCHING} {output(2)}", predict_proba="true")(rows)

    assert found.shape == (len(rows), 2)
    np.testing.assert_allclose(found[:, 1], model.inplace_predict(rows), rtol=1e-5)
    np.testing.assert_allclose(found.sum(1), 1, rtol=1e-6)


def test_probabilities_with_dims_1_are_those_of_class_1(serve, binary):
    model, rows = binary

    found = serve(model, f"{BATCHING} {output(1)}", predict_proba="true")(rows)

    assert found.shape == (len(rows),)
    np.testing.assert_allclose(found, model.inplace_predict(rows), rtol=1e-5)


def test_the_class_with_the_largest_value_is_the_answer(serve, three_classes):
    model, rows = three_classes

    found = serve(model)(rows)

    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, model.inplace_predict(rows))


def test_multi_softmax_also_returns_probabilities(serve, three_classes):
    model, rows = three_classes

    found = serve(model, predict_proba="true")(rows)

    margins = model.inplace_predict(rows, predict_type="margin")
    expected = np.exp(margins) / np.exp(margins).sum(1, keepdims=True)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_one_against_all_becomes_a_softmax(serve, forests):
    rows, labels = forests.wines()
    model = forests.lightgbm(rows, labels, objective="multiclassova", num_class=3)

    found = serve(model, predict_proba="true")(rows)

    margins = model.predict(rows, raw_score=True)
    expected = np.exp(margins) / np.exp(margins).sum(1, keepdims=True)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_random_forest_of_two_classes_ignores_the_threshold(serve, forests):
    rows, labels = forests.tumours()
    model = ensemble.RandomForestClassifier(10, max_depth=3, random_state=0).fit(rows, labels)

    found = serve(treelite.sklearn.import_model(model), threshold="0.99")(rows)

    np.testing.assert_array_equal(found, model.predict(rows))


def test_a_regression_returns_its_value(serve, binary):
    model, rows = binary

    found = serve(model, is_classifier="false")(rows)

    np.testing.assert_allclose(found, model.inplace_predict(rows), rtol=1e-5)


def test_one_value_has_a_separate_dimension_if_reshape_requires_it(serve, binary):
    model, rows = binary
    shaped = output(1).replace("dims: [1]", "dims: [ 1 ] reshape { shape: [ ] }")

    assert serve(model, f"{BATCHING} {shaped}")(rows).shape == (len(rows), 1)


@pytest.mark.parametrize(("dims", "shape"), [((-1,), (569,)), ((-1, 1), (569, 1))])
def test_without_batching_dims_are_the_whole_shape(serve, binary, dims, shape):
    model, rows = binary
    described = BATCHING.replace("dims: [ 30 ]", "dims: [ -1, 30 ]").replace("1000", "0")

    assert serve(model, f"{described} {output(*dims)}")(rows).shape == shape


@pytest.mark.parametrize(
    ("config", "text"),
    [
        (f"{BATCHING} {output(3)}", r"dims \[3\] of 'output__0' of a batch do not fit: .* answers 1 value"),
        (f"{BATCHING.replace('30', '4')} {output(1)}", r"dims \[4\] of 'input__0' .* has 30 features"),
        (f"{BATCHING.replace('FP32', 'FP64')} {output(1)}", "'input__0' is TYPE_FP64, it must be TYPE_FP32"),
        (f"{BATCHING.replace('input__0', 'x')} {output(1)}", "one input, 'input__0'; config.pbtxt has 'x'"),
        (f"{BATCHING} {output(1).replace('output__0', 'y')}", "the outputs 'output__0' and 'treeshap_out"),
    ],
)  # fmt: skip
def test_a_configuration_that_does_not_fit_the_forest_is_refused(serve, binary, config, text):
    model, _ = binary

    with pytest.raises(CoreError, match=text) as caught:
        serve(model, config)

    assert caught.value.kind is Kind.INVALID


def test_several_targets_are_refused(serve, forests):
    rows, labels = forests.tumours()
    model = ensemble.RandomForestRegressor(3, max_depth=2).fit(rows, np.stack([labels, labels], 1))

    with pytest.raises(CoreError, match="predicts 2 targets; a forest here has one"):
        serve(treelite.sklearn.import_model(model))


def test_results_of_a_gpu_become_the_same_classes(forests, binary):
    model, rows = binary
    model = treelite.frontend.from_xgboost(model)
    values = treelite.gtil.predict(model, rows, nthread=1).reshape(len(rows), -1)
    assert classes_of(np.float32([[0.1]]), Answers("sigmoid", "threshold", 1), 0.1) == 0

    for form, width in (("threshold", 1), ("pair", 2), ("values", 1)):
        forest = forests.compiled(model, form, threshold=0.3)
        wanted = forests.walked(forest, rows)
        found = classes_of(values, Answers("sigmoid", form, width), 0.3)

        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-7)


def test_statistics_have_the_memory_of_the_forest(serve, forests):
    rows, labels = forests.tumours()
    small = forests.xgboost(rows, labels, 3, objective="binary:logistic")

    (used,) = serve(small).served.statistics("m")["memory_usage"]

    assert (used["type"], used["id"]) == ("CPU", 0)
    assert 16 * 3 < used["byte_size"] < 3 * 31 * 64  # three trees of at most 31 nodes
