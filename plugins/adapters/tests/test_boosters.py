"""Files that xgboost and LightGBM write themselves: no configuration, no trust, no code."""

import lightgbm
import numpy as np
import pytest
import xgboost

THREE = np.random.default_rng(0).normal(size=(60, 3))
THREAD = 'parameters { key: "EXECUTION_MODE" value { string_value: "thread" } }'
DESCRIBED = """
input [ { name: "X" data_type: TYPE_FP64 dims: [ -1, 3 ] } ]
output [ { name: "predict" data_type: TYPE_FP64 dims: [ -1 ] } ]
"""
LABELS = (THREE[:, 0] > 0).astype(int)


@pytest.fixture
def classifier():
    return xgboost.XGBClassifier(n_estimators=3, max_depth=2, n_jobs=1).fit(THREE, LABELS)


@pytest.fixture
def booster():
    parameters = {"objective": "binary", "verbose": -1, "num_threads": 1}
    return lightgbm.train(parameters, lightgbm.Dataset(THREE, LABELS), 3)


def test_a_classifier_of_xgboost_is_served_without_a_configuration(version, server, classifier):
    classifier.save_model(version() / "model.ubj")
    server.load()

    answer = server.ask({"X": THREE.astype(np.float32)})

    np.testing.assert_array_equal(answer["predict"].ravel(), classifier.predict(THREE))
    np.testing.assert_allclose(answer["predict_proba"], classifier.predict_proba(THREE), rtol=1e-5)


def test_a_booster_of_lightgbm_returns_the_result_of_its_predict(version, server, booster):
    booster.save_model(version(THREAD + DESCRIBED) / "model.txt")
    server.load()

    answer = server.ask({"X": THREE})

    np.testing.assert_allclose(answer["predict"], booster.predict(THREE))


@pytest.mark.parametrize("name", ["model.json", "model.ubj", "model.bst"])
def test_a_booster_of_xgboost_returns_the_result_of_its_predict(tmp_path, completed, name):
    train = xgboost.DMatrix(THREE, LABELS)
    found = xgboost.train({"objective": "binary:logistic", "max_depth": 2}, train, 2)
    found.save_model(tmp_path / name)

    inputs, outputs = completed(tmp_path / name)

    assert inputs == {"X": ("TYPE_FP32", [-1, 3])}
    assert outputs == {"predict": ("TYPE_FP32", [-1, 1])}


def test_a_bst_file_may_be_of_either_library(tmp_path, completed, booster):
    booster.save_model(tmp_path / "model.bst")

    inputs, outputs = completed(tmp_path / "model.bst")

    assert inputs == {"X": ("TYPE_FP64", [-1, 3])}
    assert outputs == {"predict": ("TYPE_FP64", [-1, 1])}


@pytest.mark.parametrize(
    "name,content,text",
    [
        ("model.json", b'{"weights": [1]}', "is no model of xgboost: "),
        ("model.txt", b"weights", "is no model of LightGBM: the text that Booster.save_model"),
        ("model.txt", b"tree\nversion=v4\n", "is no model of LightGBM: "),
    ],
)
def test_a_file_of_neither_library_is_an_error_with_its_name(
    tmp_path, completed, name, content, text
):
    (tmp_path / name).write_bytes(content)

    with pytest.raises(Exception) as error:
        completed(tmp_path / name)

    assert f"'{tmp_path / name}' {text}" in str(error.value)
