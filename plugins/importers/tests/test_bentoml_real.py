"""Models and services of BentoML: the server's answers are those of the library."""

import json
import os
import subprocess
import sys
from importlib import metadata

import numpy as np
import pytest

pytest.importorskip("bentoml", reason="bentoml is not installed: dependency group importers")
pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from core import CoreError

X = np.random.default_rng(0).normal(size=(40, 4))
Y = (X[:, 0] > 0).astype(int)

SAVE = """
import sys, bentoml, numpy as np
X = np.random.default_rng(0).normal(size=(40, 4)); Y = (X[:, 0] > 0).astype(int)
kind = sys.argv[1]
if kind == "sklearn":
    from sklearn.linear_model import LogisticRegression
    bentoml.sklearn.save_model("flowers", LogisticRegression().fit(X, Y))
elif kind == "xgboost":
    import xgboost
    bentoml.xgboost.save_model("flowers", xgboost.XGBClassifier(n_estimators=4).fit(X, Y))
elif kind == "lightgbm":
    import lightgbm
    data = lightgbm.Dataset(X, label=Y)
    bentoml.lightgbm.save_model("flowers", lightgbm.train({"objective": "binary", "verbose": -1}, data, 4))
elif kind == "torchscript":
    import torch
    torch.manual_seed(0)
    bentoml.torchscript.save_model("flowers", torch.jit.script(torch.nn.Linear(4, 2)))
elif kind == "onnx":
    import onnx
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 4])
    y = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n", 4])
    graph = onnx.helper.make_graph([onnx.helper.make_node("Exp", ["x"], ["y"])], "g", [x], [y])
    opset = [onnx.helper.make_opsetid("", 17)]
    bentoml.onnx.save_model("flowers", onnx.helper.make_model(graph, opset_imports=opset, ir_version=8))
if len(sys.argv) > 2:
    bentoml.models.export_model("flowers:latest", sys.argv[2])
"""

PREDICT = """
import sys, json, bentoml, numpy as np
X = np.random.default_rng(0).normal(size=(40, 4))
kind = sys.argv[1]
model = getattr(bentoml, kind).load_model("flowers:latest")
if kind == "onnx":
    found = model.run(None, {"x": X[:4].astype("f4")})[0]
elif kind == "torchscript":
    import torch
    found = model(torch.tensor(X[:4], dtype=torch.float32)).detach().numpy()
else:
    found = model.predict(X)
print("ANSWER" + json.dumps(np.asarray(found).tolist()))
"""

SERVICE = """
from __future__ import annotations

from typing import Annotated, Generator

import bentoml
import numpy as np
from bentoml.validators import DType, Shape
from labels import LABELS
from pydantic import BaseModel


class Answer(BaseModel):
    label: str
    probability: float


@bentoml.service(workers=1, traffic={"timeout": 30})
class Flowers:
    model_ref = bentoml.models.BentoModel("flowers:latest")

    def __init__(self) -> None:
        self.model = bentoml.sklearn.load_model("flowers:latest")

    @bentoml.api
    def predict(self, x: Annotated[np.ndarray, Shape((-1, 4)), DType("float64")]) -> np.ndarray:
        return self.model.predict_proba(x)

    @bentoml.api
    def label(self, row: list[float], shout: bool = False) -> Answer:
        probability = float(self.model.predict_proba([row])[0, 1])
        text = LABELS[int(probability > 0.5)]
        return Answer(label=text.upper() if shout else text, probability=probability)

    @bentoml.api(batchable=True, max_batch_size=16)
    def lengths(self, texts: list[str]) -> list[int]:
        return [len(each) for each in texts]

    @bentoml.api
    async def count(self, n: int) -> Generator[str, None, None]:
        for i in range(n):
            yield f"{i};"
"""

# Calls each API as BentoML's own server does, over HTTP's test client.
ASK = """
import sys, json, importlib
sys.path.insert(0, ".")
from starlette.testclient import TestClient
service = importlib.import_module("flowers").Flowers
with TestClient(service.to_asgi()) as client:
    answers = [client.post(path, json=body) for path, body in json.load(sys.stdin)]
print("ANSWER" + json.dumps([each.text for each in answers]))
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("BENTOML_HOME", str(tmp_path / "bentoml"))
    monkeypatch.setenv("BENTOML_DO_NOT_TRACK", "True")
    return tmp_path / "bentoml"


def run_python(code, *arguments, given="", folder=None):
    """Run code in a new Python process. Return the JSON that it prints after ANSWER; None if it does not."""
    ended = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        input=given,
        cwd=folder,
        capture_output=True,
        text=True,
        env=os.environ,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    answers = [line for line in ended.stdout.splitlines() if line.startswith("ANSWER")]
    return json.loads(answers[0].removeprefix("ANSWER")) if answers else None


@pytest.mark.parametrize("kind", ["sklearn", "xgboost", "lightgbm"])
def test_a_tag_of_the_store(home, imported, served, kind):
    package = "scikit-learn" if kind == "sklearn" else kind
    if not any(each.name == package for each in metadata.distributions()):
        pytest.skip(
            f"the distribution '{package}' is not installed, which BentoML asks for by name"
        )
    run_python(SAVE, kind)

    imported("flowers:latest", "--trust")

    server = served("flowers")
    rows = X.astype(np.float32 if kind == "xgboost" else np.float64)
    answer = server.ask({"X": rows}, outputs=["predict"], name="flowers")["predict"]
    expected = np.array(run_python(PREDICT, kind))
    np.testing.assert_allclose(answer.ravel(), expected, rtol=1e-6)


def test_onnx_in_an_exported_archive(home, tmp_path, imported, served):
    pytest.importorskip("onnxruntime")
    file = tmp_path / "flowers.bentomodel"
    run_python(SAVE, "onnx", file)

    imported(file)

    answer = served("flowers").ask({"x": X[:4].astype(np.float32)}, name="flowers")["y"]
    np.testing.assert_array_equal(answer, np.array(run_python(PREDICT, "onnx"), np.float32))


def test_torchscript_needs_its_tensors_on_the_command_line(home, imported, refused, served):
    pytest.importorskip("torch")
    run_python(SAVE, "torchscript")
    assert "--input" in refused("flowers:latest")

    imported("flowers", "--input", "x:FP32[-1,4]", "--output", "OUTPUT__0:FP32[-1,2]")

    answer = served("flowers").ask({"x": X[:4].astype(np.float32)}, name="flowers")
    expected = run_python(PREDICT, "torchscript")
    np.testing.assert_allclose(answer["OUTPUT__0"], expected, rtol=1e-5)


@pytest.fixture
def service(home, tmp_path):
    """The file of a service; its model is in the store."""
    run_python(SAVE, "sklearn")
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "labels.py").write_text('LABELS = ["no", "yes"]\n')
    (folder / "flowers.py").write_text(SERVICE)
    return folder / "flowers.py"


def test_a_bento_that_bentoml_built(service, home, tmp_path, imported, served):
    code = """
import sys, bentoml
python = {"packages": ["scikit-learn"], "lock_packages": False}
bento = bentoml.build("flowers:Flowers", name="garden", include=["*.py"], python=python)
bento.export(sys.argv[1])
"""
    run_python(code, tmp_path / "garden.bento", folder=service.parent)

    report = imported(tmp_path / "garden.bento", "--output", "output:FP64[-1,2]", "--trust")
    home.rename(home.parent / "elsewhere")

    assert "needs    scikit-learn" in report
    answer = served("garden").ask({"x": X[:3]}, name="garden")["output"]
    assert answer.shape == (3, 2)
    np.testing.assert_allclose(answer.sum(axis=1), 1)


def test_a_service_reads_no_pickle_without_trust(service, imported, served):
    assert "--force --trust" in imported(service)
    with pytest.raises(CoreError, match="is a pickle, and reading it runs the code"):
        served("flowers")


@pytest.mark.parametrize("installed", [False, True], ids=["stand-in", "bentoml"])
def test_a_service_answers_as_bentoml(service, imported, served, repository, installed, home):
    texts = ["a", "four", "words", "here"]
    imported(service, "--output", "output:FP64[-1,2]", "--trust")
    imported(f"{service}:Flowers.label", "--name", "label", "--trust")
    imported(f"{service}:Flowers.lengths", "--name", "lengths", "--trust")
    imported(f"{service}:Flowers.count", "--name", "count", "--trust")
    asked = [
        ("/predict", {"x": X[:3].tolist()}),
        ("/label", {"row": X[0].tolist()}),
        ("/label", {"row": X[0].tolist(), "shout": True}),
        ("/lengths", {"texts": texts}),
        ("/count", {"n": 3}),
    ]
    expected = run_python(ASK, given=json.dumps(asked), folder=service.parent)
    if installed:
        for config in repository.glob("*/config.pbtxt"):
            more = 'parameters { key: "USE_PACKAGE" value { string_value: "bentoml" } }\n'
            config.write_text(config.read_text() + more)
    home.rename(home.parent / "elsewhere")  # the models were copied

    server = served("flowers")
    answer = server.ask({"x": X[:3]}, name="flowers")["output"]
    np.testing.assert_array_equal(answer, json.loads(expected[0]))
    server.load("label")
    for i, more in ((1, {}), (2, {"shout": np.array([True])})):
        answer = server.ask({"row": X[0], **more}, name="label")["output"]
        assert json.loads(answer[0]) == json.loads(expected[i])
    server.load("lengths")
    rows = np.array([[each.encode()] for each in texts], object)
    answers = server.together([{"texts": rows[:2]}, {"texts": rows[2:]}], name="lengths")
    found = np.concatenate([each["output"].ravel() for each in answers])
    assert found.tolist() == json.loads(expected[3])
    server.load("count")
    parts = server.stream({"n": np.array([3])}, name="count")
    assert b"".join(part["output"][0] for part in parts if part).decode() == expected[4]
