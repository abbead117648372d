"""Folders of MLflow, without MLflow."""

import json
import pickle

import import_sources as archives
import numpy as np
import pytest

TENSORS = """signature:
  inputs: '[{"type": "tensor", "tensor-spec": {"dtype": "float64", "shape": [-1, 3]}}]'
  outputs: '[{"type": "tensor", "tensor-spec": {"dtype": "int64", "shape": [-1]}}]'
  params: null
"""
SKLEARN = """  python_function:
    loader_module: mlflow.sklearn
    predict_fn: predict
  sklearn:
    code: null
    pickled_model: model.pkl
    serialization_format: cloudpickle
"""


def columns(*specs):
    return f"signature:\n  inputs: '{json.dumps(list(specs))}'\n  outputs: null\n"


@pytest.fixture
def estimator():
    linear = pytest.importorskip("sklearn.linear_model", reason="scikit-learn is not installed")
    x = np.random.default_rng(0).normal(size=(30, 3))
    return linear.LogisticRegression().fit(x, (x[:, 0] > 0).astype(int)), x


def test_an_estimator_by_core_adapters(tmp_path, imported, served, estimator):
    model, x = estimator
    files = {
        "model.pkl": pickle.dumps(model),
        "requirements.txt": "mlflow==3.1.0\nscikit-learn>=1\n",
    }
    source = archives.mlmodel(tmp_path / "flowers" / "model", SKLEARN, TENSORS, files)

    report = imported(source, "--trust")

    assert "flowers: MLflow model, flavour sklearn, written by MLflow 3.1.0" in report
    assert "needs    scikit-learn>=1 (here:" in report
    assert "mlflow==" not in report
    answer = served("flowers").ask({"X": x}, name="flowers")
    np.testing.assert_array_equal(answer["predict"], model.predict(x))


def test_a_pickle_is_not_trusted_without_being_asked(tmp_path, imported, served, estimator):
    files = {"model.pkl": pickle.dumps(estimator[0])}
    source = archives.mlmodel(tmp_path / "flowers", SKLEARN, TENSORS, files)

    report = imported(source)

    assert "model.pkl is a pickle" in report
    assert "--force --trust" in report
    with pytest.raises(Exception, match="it was not read"):
        served("flowers")


def test_importing_reads_no_pickle(tmp_path, imported):
    class Bad:
        def __reduce__(self):
            return open, (str(tmp_path / "ran"), "w")

    files = {"model.pkl": pickle.dumps(Bad())}
    imported(archives.mlmodel(tmp_path / "bad", SKLEARN, TENSORS, files), "--trust")

    assert not (tmp_path / "ran").exists()


def test_columns_become_inputs_of_their_types(tmp_path, imported):
    signature = columns(
        {"type": "double", "name": "age", "required": True},
        {"type": "string", "name": "city", "required": False},
        {"type": "datetime", "name": "when", "required": True},
        {"type": "array", "items": {"type": "long"}, "name": "list", "required": True},
    )
    source = archives.mlmodel(tmp_path / "m", "  python_function: {}\n", signature)

    report = imported(source)

    assert (
        "age FP64[-1,1], city STRING[-1,1] optional, when STRING[-1,1], list STRING[-1,1]" in report
    )
    assert "the signature has no outputs" in report
    assert "needs    mlflow-skinny" in report


def test_modules_beside_the_model_need_mlflow(tmp_path, imported, repository):
    flavors = SKLEARN.replace("code: null", "code: code")
    imported(archives.mlmodel(tmp_path / "m", flavors, TENSORS, {"model.pkl": b""}))

    assert "mlflow.pyfunc" in (repository / "m/1/model.py").read_text()


@pytest.mark.parametrize(
    ("flavors", "signature", "text"),
    [
        ("  spark: {data: sparkml}\n", "", "has only the flavours spark"),
        ("  []\n", "", "lists no flavors"),
        (SKLEARN, "", "names the file 'model.pkl', which is not there"),
        (SKLEARN.replace("model.pkl", "../model.pkl"), "", "which is not there"),
        ("  python_function: {}\n", "signature: {inputs: '[{'}\n", "signature.inputs is no JSON"),
        (
            "  python_function: {}\n",
            TENSORS.replace("float64", "complex64"),
            "has the dtype 'complex64'",
        ),
        ("  python_function: !!python/object:os.system {}\n", "", "is no YAML"),
    ],
)
def test_what_cannot_be_taken(tmp_path, refused, flavors, signature, text):
    (tmp_path / "model.pkl").write_bytes(b"")
    assert text in refused(archives.mlmodel(tmp_path / "m", flavors, signature))
