"""Models that MLflow itself wrote: the server's answers are those of mlflow.pyfunc."""

import json

import numpy as np
import pandas
import pytest

mlflow = pytest.importorskip("mlflow", reason="MLflow is not installed: dependency group importers")
pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from mlflow.models import infer_signature  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402

X = np.random.default_rng(0).normal(size=(40, 4))
Y = (X[:, 0] > 0).astype(int)


def saved(folder, flavour, model, **options):
    """Save a model by MLflow, and return it as mlflow.pyfunc loads it.

    The requirements are given, because MLflow takes half a minute to find them.
    """
    getattr(mlflow, flavour).save_model(
        model, str(folder), pip_requirements=["numpy", "pandas"], **options
    )
    return mlflow.pyfunc.load_model(str(folder))


@pytest.mark.parametrize("form", ["skops", "cloudpickle"])
def test_an_estimator_answers_as_pyfunc(tmp_path, imported, served, form):
    model = LogisticRegression().fit(X, Y)
    signature = infer_signature(X, model.predict(X))
    expected = saved(
        tmp_path / "iris", "sklearn", model, signature=signature, serialization_format=form
    )

    report = imported(tmp_path / "iris", "--trust")

    assert "inputs   X FP64[-1,4]\n  outputs  predict INT64[-1]" in report
    answer = served("iris").ask({"X": X}, name="iris")
    np.testing.assert_array_equal(answer["predict"], expected.predict(X))


def test_columns_of_a_data_frame_are_inputs(tmp_path, imported, served):
    frame = pandas.DataFrame(X[:, :2], columns=["age", "size"])
    model = LogisticRegression().fit(frame, Y)
    signature = infer_signature(frame, model.predict(frame))
    expected = saved(tmp_path / "columns", "sklearn", model, signature=signature)

    imported(tmp_path / "columns")

    inputs = {name: frame[[name]].to_numpy() for name in frame}
    answer = served("columns").ask(inputs, name="columns")
    np.testing.assert_array_equal(answer["predict"], expected.predict(frame))


@pytest.mark.parametrize("kind", ["classifier", "booster"])
def test_xgboost_answers_as_pyfunc(tmp_path, imported, served, kind):
    xgboost = pytest.importorskip("xgboost")
    if kind == "classifier":
        model = xgboost.XGBClassifier(n_estimators=5).fit(X, Y)
        signature = infer_signature(X, model.predict(X))
    else:
        model = xgboost.train({"objective": "binary:logistic"}, xgboost.DMatrix(X, label=Y), 5)
        signature = infer_signature(X, model.predict(xgboost.DMatrix(X)))
    expected = saved(tmp_path / "trees", "xgboost", model, signature=signature)

    imported(tmp_path / "trees")

    answer = served("trees").ask({"X": X}, name="trees")
    np.testing.assert_array_equal(answer["predict"], expected.predict(X))


@pytest.mark.parametrize("kind", ["classifier", "booster"])
def test_lightgbm_answers_as_pyfunc(tmp_path, imported, served, kind):
    lightgbm = pytest.importorskip("lightgbm")
    if kind == "classifier":
        model = lightgbm.LGBMClassifier(n_estimators=4, verbose=-1).fit(X, Y)
    else:
        data = lightgbm.Dataset(X, label=Y)
        model = lightgbm.train({"objective": "binary", "verbose": -1}, data, 5)
    signature = infer_signature(X, model.predict(X))
    expected = saved(tmp_path / "trees", "lightgbm", model, signature=signature)

    imported(tmp_path / "trees", "--trust")

    answer = served("trees").ask({"X": X}, name="trees")
    np.testing.assert_array_equal(answer["predict"], expected.predict(X))


def test_onnx_runs_in_its_backend(tmp_path, imported, served):
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 4])
    y = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n", 4])
    graph = onnx.helper.make_graph([onnx.helper.make_node("Exp", ["x"], ["y"])], "g", [x], [y])
    opset = [onnx.helper.make_opsetid("", 17)]
    model = onnx.helper.make_model(graph, opset_imports=opset, ir_version=8)
    rows = X.astype(np.float32)
    signature = infer_signature({"x": rows}, {"y": np.exp(rows)})
    expected = saved(tmp_path / "exp", "onnx", model, signature=signature)

    imported(tmp_path / "exp")

    answer = served("exp").ask({"x": rows[:4]}, name="exp")
    np.testing.assert_array_equal(answer["y"], expected.predict({"x": rows[:4]})["y"])


@pytest.mark.parametrize("kind", ["script", "export", "pickle"])
def test_pytorch_answers_as_pyfunc(tmp_path, imported, served, kind):
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU()).eval()
    rows = X[:4].astype(np.float32)
    signature = infer_signature(rows, model(torch.tensor(rows)).detach().numpy())
    options = {"serialization_format": "pickle"}
    if kind == "export":
        options = {"serialization_format": "pt2", "input_example": rows}
    given = torch.jit.script(model) if kind == "script" else model
    expected = saved(tmp_path / "net", "pytorch", given, signature=signature, **options)

    imported(tmp_path / "net")

    server = served("net")
    name = server.config("net").input[0].name
    (answer,) = server.ask({name: rows}, name="net").values()
    assert server.config("net").backend == ("python" if kind == "pickle" else "pytorch")
    np.testing.assert_allclose(answer, expected.predict(rows), rtol=1e-6)


class Scaled(mlflow.pyfunc.PythonModel):
    def predict(self, context, model_input, params=None):
        factor = (params or {}).get("factor", 2.0)
        return pandas.DataFrame(
            {
                "sum": model_input["a"] + factor * model_input["b"],
                "text": [each.upper() for each in model_input["t"]],
            }
        )


def test_a_python_model_with_columns_and_parameters(tmp_path, imported, served):
    frame = pandas.DataFrame({"a": [1.0, 2.0], "b": [3, 4], "t": ["x", "yé"]})
    output = Scaled().predict(None, frame)
    signature = infer_signature(frame, output, params={"factor": 2.0})
    mlflow.pyfunc.save_model(
        str(tmp_path / "scaled"),
        python_model=Scaled(),
        signature=signature,
        pip_requirements=["numpy"],
    )
    expected = mlflow.pyfunc.load_model(str(tmp_path / "scaled"))

    report = imported(tmp_path / "scaled")

    assert "factor FP64[1] optional" in report
    assert "needs    mlflow" in report
    inputs = {
        "a": np.array([[1.0], [2.0]]),
        "b": np.array([[3], [4]]),
        "t": np.array([[b"x"], ["yé".encode()]], object),
    }
    server = served("scaled")
    for params in ({}, {"factor": 5.0}):
        more = {name: np.array([value]) for name, value in params.items()}
        answer = server.ask({**inputs, **more}, name="scaled")
        wanted = expected.predict(frame, params=params)
        np.testing.assert_array_equal(answer["sum"].ravel(), wanted["sum"])
        assert [each.decode() for each in answer["text"].ravel()] == list(wanted["text"])


class Counted(mlflow.pyfunc.PythonModel):
    def predict(self, context, model_input, params=None):
        return {"rows": len(model_input), "names": list(model_input.columns)}


def test_without_a_signature_requests_are_json(tmp_path, imported, served):
    folder = tmp_path / "counted"
    mlflow.pyfunc.save_model(str(folder), python_model=Counted(), pip_requirements=["numpy"])

    imported(folder)

    request = {"dataframe_split": {"columns": ["a", "b"], "data": [[1, 2], [3, 4], [5, 6]]}}
    text = np.array([json.dumps(request).encode()], object)
    answer = served("counted").ask({"input": text}, name="counted")
    assert json.loads(answer["output"][0]) == {"rows": 3, "names": ["a", "b"]}
