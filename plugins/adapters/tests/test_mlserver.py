"""Unchanged folders of MLServer: model-settings.json beside the model, no versions, no config.pbtxt."""

import json
import sys
from importlib.util import find_spec

import joblib
import lightgbm
import numpy as np
import pytest
from core_adapters.adapter import model_of_file
from sklearn.linear_model import LogisticRegression

from core import CoreError

# Never in this process: clients of Triton, which other tests import, have messages of the same names.
needs_mlserver = pytest.mark.skipif(find_spec("mlserver") is None, reason="there is no mlserver")
FLOWERS = np.random.default_rng(0).normal(size=(40, 4))
LABELS = (FLOWERS[:, 0] > 0).astype(int)

RUNTIME = """
from mlserver import MLModel
from mlserver.codecs import NumpyCodec, StringCodec, decode_args
from mlserver.errors import InferenceError
from mlserver.types import InferenceResponse, Parameters
import numpy as np

class Runtime(MLModel):
    async def load(self):
        self.factor = self.settings.parameters.extra["factor"]
        return True

    async def predict(self, payload):
        x = self.decode(payload.inputs[0], default_codec=NumpyCodec)
        if x[0, 0] < 0:
            raise InferenceError("too small")
        words = [f"{self.name} {payload.id}"]
        return InferenceResponse(
            model_name=self.name,
            parameters=Parameters(rows=len(x)),
            outputs=[NumpyCodec.encode_output("y", x * self.factor),
                     StringCodec.encode_output("words", words)],
        )

    async def predict_stream(self, payloads):
        async for payload in payloads:
            for i in range(3):
                x = self.decode(payload.inputs[0], default_codec=NumpyCodec)
                yield InferenceResponse(
                    model_name=self.name, outputs=[NumpyCodec.encode_output("y", x + i)])
"""


@pytest.fixture
def write(repository):
    """Write a folder of MLServer."""

    def make(settings, files=None, config=None):
        folder = repository / "example"
        folder.mkdir()
        (folder / "model-settings.json").write_text(json.dumps(settings))
        for name, content in (files or {}).items():
            (folder / name).write_text(content)
        if config is not None:
            (folder / "config.pbtxt").write_text(config)
        return folder

    return make


def lightgbm_model():
    parameters = {"objective": "binary", "verbose": -1, "num_threads": 1}
    train = lightgbm.Dataset(FLOWERS, LABELS)
    return lightgbm.train(parameters, train, 1).model_to_string().encode()


def custom(**more):
    return {
        "name": "example",
        "implementation": "runtimes.Runtime",
        "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 2]}],
        "outputs": [
            {"name": "y", "datatype": "FP32", "shape": [-1, 2]},
            {"name": "words", "datatype": "BYTES", "shape": [-1, 1]},
        ],
        "parameters": {"extra": {"factor": 3}},
        **more,
    }


def test_a_folder_for_its_scikit_learn_runtime_is_served_unchanged(write, server):
    settings = {
        "name": "example",
        "implementation": "mlserver_sklearn.SKLearnModel",
        "parameters": {"uri": "./flowers.joblib", "version": "v0.1.0", "extra": {"trusted": True}},
    }
    model = LogisticRegression().fit(FLOWERS, LABELS)
    joblib.dump(model, write(settings) / "flowers.joblib")
    server.load()

    answer = server.ask({"predict": FLOWERS.astype(np.float32)})

    np.testing.assert_array_equal(answer["predict"].ravel(), model.predict(FLOWERS))
    assert answer["predict_proba"].shape == (40, 2)


@needs_mlserver
def test_a_custom_runtime_runs_with_the_real_package(write, server):
    write(custom(), {"runtimes.py": RUNTIME})
    server.load()
    x = np.array([[1, 2], [3, 4]], np.float32)

    answer, refused = server.together([{"x": x}, {"x": -x}])

    np.testing.assert_array_equal(answer["y"], 3 * x)
    assert answer["words"].tolist() == [[b"example kit"]]
    assert isinstance(refused, CoreError)
    assert refused.message.endswith("too small")


@needs_mlserver
def test_predict_stream_gives_many_answers(write, server):
    write(custom(), {"runtimes.py": RUNTIME}, "model_transaction_policy { decoupled: true }")
    server.load()

    answers = server.stream({"x": np.zeros((1, 2), np.float32)})

    assert [each["y"].tolist() for each in answers if each] == [[[0, 0]], [[1, 1]], [[2, 2]]]


def test_a_pickle_in_its_folder_needs_the_trust_too(write, completed):
    folder = write({"implementation": "mlserver_sklearn.SKLearnModel"})
    joblib.dump(LogisticRegression().fit(FLOWERS, LABELS), folder / "model.joblib")

    with pytest.raises(Exception, match="is a pickle"):
        completed(folder / "model-settings.json")


def test_inputs_and_outputs_are_those_of_the_settings(write, completed):
    folder = write(
        {
            "implementation": "mlserver_sklearn.SKLearnModel",
            "inputs": [{"name": "flowers", "datatype": "FP64", "shape": [-1, 4]}],
            "outputs": [{"name": "predict", "datatype": "INT64", "shape": [-1]}],
        }
    )
    joblib.dump(LogisticRegression().fit(FLOWERS, LABELS), folder / "model.joblib")

    found = completed(folder / "model-settings.json", 0, {"TRUSTED": "true"})

    assert found == (
        {"flowers": ("TYPE_FP64", [-1, 4])},
        {"predict": ("TYPE_INT64", [-1])},
    )


@pytest.mark.parametrize(
    "implementation,kind,files",
    [
        ("mlserver_xgboost.XGBoostModel", "XGBoostModel", "model.bst, model.json, model.ubj"),
        ("mlserver_lightgbm.LightGBMModel", "LightGBMModel", "model.bst, model.txt"),
        ("mlserver_sklearn.sklearn.SKLearnModel", "SKLearnModel", "model.joblib, model.pickle"),
    ],
)
def test_a_folder_without_the_file_of_its_runtime_is_an_error_with_the_expected_names(
    write, completed, implementation, kind, files
):
    folder = write({"implementation": implementation})

    with pytest.raises(Exception) as error:
        completed(folder / "model-settings.json")

    assert f"'{folder}' has none of {files}" in str(error.value)


def test_a_uri_that_is_not_there_is_refused_by_name(write, completed):
    folder = write(
        {"implementation": "mlserver_lightgbm.LightGBMModel", "parameters": {"uri": "no.bst"}}
    )

    with pytest.raises(Exception, match=r"the uri 'no\.bst' is not there"):
        completed(folder / "model-settings.json")


@pytest.mark.parametrize(
    "inputs", [[{"name": "x"}], "x", [{"name": "x", "datatype": 1, "shape": 2}]]
)
def test_inputs_of_settings_that_are_none_are_refused(write, completed, inputs):
    folder = write({"implementation": "mlserver_lightgbm.LightGBMModel", "inputs": inputs})
    (folder / "model.txt").write_bytes(lightgbm_model())

    with pytest.raises(Exception, match=r"inputs is .*, expected a list of objects with name"):
        completed(folder / "model-settings.json")


@pytest.mark.parametrize(
    "settings,text",
    [("{", "is no JSON"), ("[]", "must hold a JSON object"), ("{}", "names no implementation")],
)
def test_settings_that_cannot_be_understood_are_refused_by_name(tmp_path, settings, text):
    file = tmp_path / "model-settings.json"
    file.write_text(settings)

    with pytest.raises(Exception, match=text):
        model_of_file(str(file))


@needs_mlserver
def test_a_missing_runtime_is_an_error_with_the_package_to_install(write, server):
    write(custom(implementation="mlserver_catboost.CatboostModel"))

    with pytest.raises(CoreError, match="try: pip install mlserver-catboost"):
        server.load()


def test_without_mlserver_a_custom_runtime_is_refused_with_the_package_to_install(
    write, completed, monkeypatch
):
    folder = write(custom())
    monkeypatch.setitem(sys.modules, "mlserver.settings", None)

    with pytest.raises(Exception, match=r"try: pip install mlserver$"):
        completed(folder / "model-settings.json")
