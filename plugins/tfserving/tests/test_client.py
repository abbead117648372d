"""The package tensorflow-serving-api, and the requests of TensorFlow Serving's documentation, on SavedModels.

Runs where TensorFlow and that package are installed: make test-formats.
"""

import json
import shutil
import urllib.request

import grpc
import numpy as np
import pytest

pytest.importorskip("tensorflow_serving", reason="tensorflow-serving-api is not installed")
pytest.importorskip("backend_tensorflow", reason="backend-tensorflow is not installed")

import tensorflow as tf
from saved_models.modules import examples_of
from saved_models.version_1 import version_1_any_shape, version_1_estimator
from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    inference_pb2,
    input_pb2,
    model_management_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
    regression_pb2,
)
from tensorflow_serving.config import model_server_config_pb2

import core

OTHERS = {"predict": "people_predict", "regression": "people_regression"}
CLASSIFY, REGRESS = "tensorflow/serving/classify", "tensorflow/serving/regress"
AGES = [3.0, 40.0, 7.0, 8.0, 9.0]


def parameter(name, value):
    return f'parameters {{ key: "{name}" value {{ string_value: "{value}" }} }}\n'


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """One SavedModel with three signatures as three models, and the one of the documentation."""
    models = tmp_path_factory.mktemp("models")
    version_1_any_shape(models / "half_plus_two" / "123")
    made = models / "people" / "1"
    version_1_estimator(made)
    config = "".join(parameter(f"signature.{key}", name) for key, name in OTHERS.items())
    (models / "people" / "config.pbtxt").write_text(config + parameter("version_label.stable", "1"))
    for key, name in OTHERS.items():
        shutil.copytree(made, models / name / "1")
        (models / name / "config.pbtxt").write_text(parameter("TF_SIGNATURE_DEF", key))
    return models


@pytest.fixture(scope="module")
def server(repository):
    with core.Server(
        model_repository=str(repository), model_control_mode="explicit", load_model=["*"]
    ) as running:
        yield running


@pytest.fixture(scope="module")
def ports(server):
    return server.serve(http_port=0, grpc_port=0)


@pytest.fixture(scope="module")
def channel(ports):
    with grpc.insecure_channel(f"127.0.0.1:{ports['grpc']}") as found:
        yield found


@pytest.fixture(scope="module")
def stub(channel):
    return prediction_service_pb2_grpc.PredictionServiceStub(channel)


@pytest.fixture(scope="module")
def weights(server):
    """The weights of the classifier: its scores are softmax(age * weights)."""
    answer = server.infer("people_regression", {"inputs": examples_of([1.0], [[]])[:, None]})
    return answer["outputs"]


def people():
    """Return the examples as the client sends them."""
    found = input_pb2.Input()
    for each in examples_of(AGES, [[]] * len(AGES)):
        found.example_list.examples.append(tf.train.Example.FromString(each))
    return found


def test_predict_sends_a_vector_of_serialized_examples(stub):
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "people"
    request.model_spec.signature_name = "predict"
    request.inputs["examples"].CopyFrom(
        tf.make_tensor_proto(examples_of(AGES, [[]] * len(AGES)).tolist(), shape=[len(AGES)])
    )

    answer = stub.Predict(request, 20)

    probabilities = tf.make_ndarray(answer.outputs["probabilities"])
    assert probabilities.shape == (5, 3)
    np.testing.assert_allclose(probabilities.sum(1), 1, rtol=1e-5)
    assert tf.make_ndarray(answer.outputs["class_ids"]).tolist() == (
        probabilities.argmax(1)[:, None].tolist()
    )
    assert (answer.model_spec.name, answer.model_spec.signature_name) == ("people", "predict")


def test_classify_has_the_labels_and_scores_of_the_model(stub):
    request = classification_pb2.ClassificationRequest(input=people())
    request.model_spec.name = "people"

    answer = stub.Classify(request, 20)

    assert len(answer.result.classifications) == 5
    for each in answer.result.classifications:
        assert [found.label for found in each.classes] == ["no", "maybe", "yes"]
        assert abs(sum(found.score for found in each.classes) - 1) < 1e-5


def test_regress_of_a_signature(stub, weights):
    request = regression_pb2.RegressionRequest(input=people())
    request.model_spec.name = "people"
    request.model_spec.signature_name = "regression"

    answer = stub.Regress(request, 20)

    values = [each.value for each in answer.result.regressions]
    np.testing.assert_allclose(values, np.array(AGES) * weights[0, 0], rtol=1e-5)


def test_multi_inference(stub):
    request = inference_pb2.MultiInferenceRequest(input=people())
    for method, key in ((CLASSIFY, ""), (REGRESS, "regression")):
        task = request.tasks.add(method_name=method)
        task.model_spec.name, task.model_spec.signature_name = "people", key

    first, second = stub.MultiInference(request, 20).results

    assert len(first.classification_result.classifications) == 5
    assert len(second.regression_result.regressions) == 5
    assert second.model_spec.signature_name == "regression"


def test_metadata_have_all_signatures(stub):
    request = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
    request.model_spec.name = "people"
    answer = stub.GetModelMetadata(request, 20)

    found = get_model_metadata_pb2.SignatureDefMap()
    assert answer.metadata["signature_def"].Unpack(found)

    signatures = found.signature_def
    assert set(signatures) == {"serving_default", "predict", "regression"}
    inputs = signatures["predict"].inputs["examples"]
    assert inputs.dtype == tf.string.as_datatype_enum
    assert [dim.size for dim in inputs.tensor_shape.dim] == [-1]


def test_status_and_the_list_of_models(channel, server):
    models = model_service_pb2_grpc.ModelServiceStub(channel)
    request = get_model_status_pb2.GetModelStatusRequest()
    request.model_spec.name = "half_plus_two"
    state = get_model_status_pb2.ModelVersionStatus
    (found,) = models.GetModelStatus(request, 20).model_version_status
    assert (found.version, found.state) == (123, state.AVAILABLE)

    lists = model_management_pb2.ReloadConfigRequest()
    entries = lists.config.model_config_list
    for name in ("people", *OTHERS.values()):
        entries.config.add(name=name, base_path=f"/models/{name}", model_platform="tensorflow")
    assert models.HandleReloadConfigRequest(lists, 60).status.error_code == 0
    assert not server.ready("half_plus_two")

    entries.config.append(model_server_config_pb2.ModelConfig(name="half_plus_two"))
    models.HandleReloadConfigRequest(lists, 60)
    assert server.ready("half_plus_two")


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        ("half_plus_two:predict", {"instances": [1.0, 2.0, 5.0]}, {"predictions": [2.5, 3, 4.5]}),
        (
            "half_plus_two/versions/123:predict",
            {"signature_name": "serving_default", "instances": [1.0]},
            {"predictions": [2.5]},
        ),
        ("half_plus_two:predict", {"inputs": {"x": [4.0]}}, {"outputs": [4.0]}),
    ],
)
def test_requests_of_the_documentation(ports, path, body, expected):
    url = f"http://127.0.0.1:{ports['http']}/v1/models/{path}"
    with urllib.request.urlopen(url, json.dumps(body).encode(), timeout=20) as answer:
        assert json.load(answer) == expected


def test_classify_over_http_makes_examples_of_features(ports):
    url = f"http://127.0.0.1:{ports['http']}/v1/models/people/labels/stable:classify"
    body = {"examples": [{"age": 3.0}, {"age": [40.0]}]}
    with urllib.request.urlopen(url, json.dumps(body).encode(), timeout=20) as answer:
        results = json.load(answer)["results"]

    assert [[label for label, _ in row] for row in results] == [["no", "maybe", "yes"]] * 2
