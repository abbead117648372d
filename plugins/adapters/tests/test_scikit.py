"""scikit-learn estimators without a line of code: pickles that are trusted, and skops."""

import joblib
import numpy as np
import pandas
import pytest
import skops.io
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from core import CoreError

THREAD = 'parameters { key: "EXECUTION_MODE" value { string_value: "thread" } }'
TRUSTED = 'parameters { key: "TRUSTED" value { string_value: "true" } }'


def points(rows=40):
    """Three features and the labels 0 and 1 that go with them."""
    features = np.random.default_rng(0).normal(size=(rows, 3))
    return features, (features[:, 0] > 0).astype(int)


def test_a_trusted_pickle_is_served_unchanged(version, server):
    x, y = points()
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(x, y)
    joblib.dump(model, version(TRUSTED + THREAD) / "model.joblib")

    server.load()
    answer = server.ask({"X": x[:5]})

    np.testing.assert_array_equal(answer["predict"].ravel(), model.predict(x[:5]))
    np.testing.assert_allclose(answer["predict_proba"], model.predict_proba(x[:5]))
    only = server.ask({"X": x[:2]}, outputs=["predict_proba"])
    assert list(only) == ["predict_proba"]


def test_skops_needs_no_trust_and_no_config_for_known_types(version, server):
    x, y = points()
    model = LinearRegression().fit(x, 2.5 * y)
    skops.io.dump(model, version() / "model.skops")

    server.load()

    np.testing.assert_allclose(server.ask({"X": x})["predict"].ravel(), model.predict(x))


def test_rows_of_several_requests_are_predicted_at_once_and_a_bad_one_fails_alone(version, server):
    x, y = points()
    model = LogisticRegression().fit(x, y)
    more = THREAD + "max_batch_size: 16 dynamic_batching { max_queue_delay_microseconds: 5000000 }"
    skops.io.dump(model, version(more) / "model.skops")
    server.load()

    answers = server.together([{"X": x[i : i + 4]} for i in range(0, 16, 4)])
    *good, bad = server.together(
        [{"X": x[i : i + 5]} for i in (0, 5, 10)] + [{"X": np.full((1, 3), np.nan)}]
    )

    assert server.executions() == 2
    for i, answer in enumerate(answers):
        expected = model.predict_proba(x[4 * i : 4 * i + 4])
        np.testing.assert_allclose(answer["predict_proba"], expected)
    for i, answer in enumerate(good):
        assert answer["predict"].ravel().tolist() == model.predict(x[5 * i : 5 * i + 5]).tolist()
    assert isinstance(bad, CoreError)
    assert "NaN" in bad.message


def test_a_pipeline_that_wants_names_has_an_input_for_each_column(version, server):
    frame = pandas.DataFrame(
        {"age": [20.0, 60, 30, 50], "city": ["Bonn", "Ulm", "Bonn", "Ulm"], "unused": 0}
    )
    columns = ColumnTransformer(
        [("n", StandardScaler(), ["age"]), ("c", OneHotEncoder(), ["city"])]
    )
    model = make_pipeline(columns, LogisticRegression()).fit(frame, ["no", "yes", "no", "yes"])
    joblib.dump(model, version(TRUSTED + THREAD) / "model.joblib")
    server.load()

    answer = server.ask(
        {
            "unused": np.zeros((2, 1)),
            "city": np.array([["Ulm"], ["Bonn"]], object),
            "age": np.array([[55.0], [22.0]]),
        },
        outputs=["predict"],
    )

    assert answer["predict"].ravel().tolist() == [b"yes", b"no"]


def test_columns_may_be_plain_vectors_if_the_config_allows_it(version, server):
    frame = pandas.DataFrame({"a": [0.0, 1, 2, 3], "b": [1.0, 0, 1, 0]})
    model = LinearRegression().fit(frame, [0.0, 1, 2, 3])
    config = """
        input [ { name: "b" data_type: TYPE_FP32 dims: [ -1 ] } ]
        input [ { name: "a" data_type: TYPE_FP32 dims: [ -1 ] } ]
        output [ { name: "predict" data_type: TYPE_FP32 dims: [ -1 ] } ]
        parameters { key: "EXECUTION_MODE" value { string_value: "thread" } }"""
    skops.io.dump(model, version(config) / "model.skops")
    server.load()

    vector = np.array([0, 1], np.float32)
    answer = server.ask({"b": vector, "a": vector + 4})

    np.testing.assert_allclose(answer["predict"], [4, 5], rtol=1e-5)


@pytest.mark.parametrize(
    "model,inputs,outputs",
    [
        (
            lambda: LogisticRegression().fit(*points()),
            {"X": ("TYPE_FP64", [-1, 3])},
            {"predict": ("TYPE_INT64", [-1, 1]), "predict_proba": ("TYPE_FP64", [-1, 2])},
        ),
        (
            lambda: LogisticRegression().fit(points()[0], points()[1] * 1.0),
            {"X": ("TYPE_FP64", [-1, 3])},
            {"predict": ("TYPE_FP64", [-1, 1]), "predict_proba": ("TYPE_FP64", [-1, 2])},
        ),
        (
            lambda: LinearRegression().fit(points()[0], points()[0][:, :2]),
            {"X": ("TYPE_FP64", [-1, 3])},
            {"predict": ("TYPE_FP64", [-1, 2])},
        ),
        (
            lambda: KMeans(2, n_init=1).fit(points()[0]),
            {"X": ("TYPE_FP64", [-1, 3])},
            {"predict": ("TYPE_INT32", [-1, 1])},
        ),
        (
            lambda: StandardScaler().fit(points()[0]),
            {"X": ("TYPE_FP64", [-1, 3])},
            {"transform": ("TYPE_FP64", [-1, 3])},
        ),
        (
            lambda: make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(
                ["good", "bad", "good day"], ["+", "-", "+"]
            ),
            {"X": ("TYPE_STRING", [-1, 1])},
            {"predict": ("TYPE_STRING", [-1, 1]), "predict_proba": ("TYPE_FP64", [-1, 2])},
        ),
    ],
    ids=["classes", "float classes", "two targets", "clusters", "transformer", "texts"],
)
def test_an_estimator_describes_its_inputs_and_outputs(tmp_path, completed, model, inputs, outputs):
    joblib.dump(model(), tmp_path / "model.joblib")

    assert completed(tmp_path / "model.joblib", 0, {"TRUSTED": "true"}) == (inputs, outputs)


def test_rows_are_the_batch_where_there_is_a_max_batch_size(tmp_path, completed):
    joblib.dump(LogisticRegression().fit(*points()), tmp_path / "model.pkl")

    inputs, outputs = completed(tmp_path / "model.pkl", 8, {"TRUSTED": "true"})

    assert inputs == {"X": ("TYPE_FP64", [3])}
    assert outputs == {"predict": ("TYPE_INT64", [1]), "predict_proba": ("TYPE_FP64", [2])}


def test_an_output_that_no_method_gives_is_refused_by_name(version, server):
    config = """
        input [ { name: "X" data_type: TYPE_FP64 dims: [ -1, 3 ] } ]
        output [ { name: "predict_proba" data_type: TYPE_FP64 dims: [ -1, 2 ] } ]
        parameters { key: "EXECUTION_MODE" value { string_value: "thread" } }"""
    skops.io.dump(LinearRegression().fit(*points()), version(config) / "model.skops")

    with pytest.raises(CoreError, match=r"a LinearRegression can be asked for predict\b"):
        server.load()


def test_a_file_that_holds_no_estimator_is_refused_by_its_type(tmp_path, completed):
    joblib.dump({"weights": [1]}, tmp_path / "model.joblib")

    with pytest.raises(Exception, match=r"holds a builtins\.dict, which has neither predict nor"):
        completed(tmp_path / "model.joblib", 0, {"TRUSTED": "true"})


def test_texts_reach_a_vectorizer_as_a_list(version, server):
    model = make_pipeline(TfidfVectorizer(), LogisticRegression())
    model.fit(["good", "bad", "good day", "bad day"], [1, 0, 1, 0])
    config = """
        input [ { name: "text" data_type: TYPE_STRING dims: [ -1 ] } ]
        output [ { name: "predict" data_type: TYPE_INT64 dims: [ -1 ] } ]
        parameters { key: "EXECUTION_MODE" value { string_value: "thread" } }"""
    joblib.dump(model, version(config + TRUSTED) / "model.joblib")
    server.load()

    answer = server.ask({"text": np.array(["good", "bad"], object)})

    assert answer["predict"].tolist() == [1, 0]
