"""Files with a LitAPI or a BentoML service, without LitServe and BentoML."""

import json

import numpy as np
import pytest

LIT = """
import litserve as ls
from helper import double


class Base(ls.LitAPI):
    def decode_request(self, request):
        return request["x"]


class Doubled(Base):
    def setup(self, device):
        with open("data/offset.txt") as file:
            self.offset = int(file.read())

    def predict(self, x):
        return double(x) + self.offset

    def encode_response(self, output):
        return {"y": output}


if __name__ == "__main__":
    ls.LitServer(Doubled(), workers_per_device=2, timeout=30).run(port=8000)
"""

BENTO = """
import io
from typing import Optional

import bentoml
import numpy as np


@bentoml.service
class Maths:
    @bentoml.on_startup
    def start(self):
        self.started = True

    @bentoml.api
    def predict(self, a: float, b: Optional[int] = None, note: str = "none") -> dict:
        return {"sum": a + (b or 0), "note": note, "started": self.started}

    @bentoml.api
    def mean(self, x: np.ndarray) -> float:
        return float(np.mean(x))

    @bentoml.api
    async def fail(self, a: int) -> int:
        raise ValueError("a is never right")
"""


@pytest.fixture
def lit(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "offset.txt").write_text("5")
    (tmp_path / "helper.py").write_text("def double(x):\n    return 2 * x\n")
    (tmp_path / "doubled.py").write_text(LIT)
    return tmp_path / "doubled.py"


def json_of(value):
    return np.array([json.dumps(value).encode()], object)


def test_a_litapi_with_a_helper_and_a_file(lit, imported, served, repository):
    report = imported(lit, "--with", str(lit.parent / "data"))

    assert "LitAPI Doubled of doubled.py" in report
    assert "timeout: see queue policies" in report
    assert sorted(each.name for each in (repository / "doubled/1/source").iterdir()) == [
        "data",
        "doubled.py",
        "helper.py",
    ]
    server = served("doubled")
    assert server.config("doubled").instance_group[0].count == 2
    answer = server.ask({"request": json_of({"x": 4})}, name="doubled")["response"]
    assert json.loads(answer[0]) == {"y": 13}


def test_a_service_of_bentoml(tmp_path, imported, served):
    (tmp_path / "maths.py").write_text(BENTO)

    report = imported(tmp_path / "maths.py")

    assert "inputs   a FP64[1], b INT64[1] optional, note STRING[1] optional" in report
    assert "mean, fail not taken" in report
    server = served("maths")
    for more, wanted in (
        ({}, {"sum": 1.5, "note": "none", "started": True}),
        (
            {"b": np.array([2]), "note": np.array([b"hi"], object)},
            {"sum": 3.5, "note": "hi", "started": True},
        ),
    ):
        answer = server.ask({"a": np.array([1.5]), **more}, name="maths")["output"]
        assert json.loads(answer[0]) == wanted


def test_an_array_without_a_shape_is_json_or_a_declared_tensor(tmp_path, imported, served):
    (tmp_path / "maths.py").write_text(BENTO)
    source = f"{tmp_path / 'maths.py'}:Maths.mean"

    assert "x: the annotation has no shape" in imported(source, "--name", "json")
    imported(source, "--name", "tensor", "--input", "x:FP32[-1,-1]")

    server = served("json")
    assert server.ask({"x": json_of([[1, 2], [3, 4]])}, name="json")["output"].tolist() == [2.5]
    server.load("tensor")
    answer = server.ask({"x": np.ones((2, 3), np.float32)}, name="tensor")["output"]
    assert answer.tolist() == [1.0]


def test_the_error_of_an_api_reaches_the_client(tmp_path, imported, served):
    (tmp_path / "maths.py").write_text(BENTO)
    imported(f"{tmp_path / 'maths.py'}:Maths.fail", "--name", "fails")

    error = served("fails").answer({"a": np.array([1])}, name="fails")

    assert "ValueError: a is never right" in error.message


def test_importing_runs_nothing_of_the_file(lit, imported):
    lit.write_text(f"open({str(lit.parent / 'ran')!r}, 'w')\n{LIT}")
    imported(lit)
    assert not (lit.parent / "ran").exists()


@pytest.mark.parametrize(
    ("code", "member", "text"),
    [
        ("x = 1\n", "", "has neither a class that extends litserve.LitAPI nor"),
        ("def f(:\n", "", "is no Python 3"),
        (LIT, ":Other", "has no class 'Other' that can be served; it has Doubled"),
        (LIT.replace("Doubled()", "Doubled(x)"), "", "'x' is no literal"),
        (LIT.replace("Doubled()", "Doubled(spec=ls.OpenAISpec())"), "", "an OpenAI specification"),
        (LIT + "\n\nclass Other(ls.LitAPI):\n    pass\n", "", "has Doubled, Other; name one"),
        (LIT + "\n\nclass Other(ls.LitAPI):\n    pass\n", ":Other", "has no predict"),
        (BENTO, ":Maths.other", "has no API 'other'; it has predict, mean, fail"),
        (BENTO.replace("predict", "add"), "", "has the APIs add, mean, fail; name one"),
        (
            BENTO.replace("@bentoml.on_startup", "x = bentoml.depends(Maths)\n"),
            "",
            "depends on other services",
        ),
        (
            'import bentoml\nsvc = bentoml.Service("old", runners=[])\n',
            "",
            "is the form before BentoML 1.2",
        ),
    ],
)
def test_what_cannot_be_taken(tmp_path, refused, code, member, text):
    (tmp_path / "app.py").write_text(code)
    assert text in refused(f"{tmp_path / 'app.py'}{member}")


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("bentoml.keras", "no backend of this server reads Keras files"),
        ("bentoml.pytorch", "export it by torch.export"),
        ("bentoml.detectron", "import the service that calls it"),
    ],
)
def test_models_of_the_store_that_no_backend_reads(tmp_path, refused, module, text):
    folder = tmp_path / "stored"
    folder.mkdir()
    (folder / "model.yaml").write_text(f"name: stored\nversion: abc\nmodule: {module}\n")
    assert text in refused(folder)


def test_a_stored_model_of_tensorflow_is_a_saved_model(tmp_path, imported, repository):
    folder = tmp_path / "stored"
    (folder / "variables").mkdir(parents=True)
    (folder / "model.yaml").write_text("name: stored\nversion: abc\nmodule: bentoml.tensorflow\n")
    (folder / "saved_model.pb").write_bytes(b"graph")
    (folder / "variables" / "variables.index").write_bytes(b"index")

    report = imported(folder)

    assert "backend-tensorflow[cpu]" in report
    model = repository / "stored"
    assert 'backend: "tensorflow"' in (model / "config.pbtxt").read_text()
    found = model / "1" / "model.savedmodel"
    assert (found / "saved_model.pb").read_bytes() == b"graph"
    assert (found / "variables" / "variables.index").read_bytes() == b"index"
    assert not (found / "model.yaml").exists()


def test_a_tag_without_a_store(tmp_path, refused, monkeypatch):
    monkeypatch.setenv("BENTOML_HOME", str(tmp_path / "nowhere"))
    assert "there is no file or folder 'iris:latest'" in refused("iris:latest")
    (tmp_path / "nowhere" / "models" / "iris" / "abc").mkdir(parents=True)
    assert "has no version 'latest'; there are abc" in refused("iris:latest")
