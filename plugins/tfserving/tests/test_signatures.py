"""Signatures of other models: the version that answers, and models that are absent."""

import grpc
import pytest
from frontend_tfserving.rpc import messages

import core

from .conftest import Rest

CONFIG = """backend: "identity" max_batch_size: 4 version_policy { all { } }
input { name: "INPUT0" data_type: TYPE_FP32 dims: [ 1 ] }
output { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 1 ] }
"""
OTHERS = "".join(
    f'parameters {{ key: "signature.{name}" value {{ string_value: "{model}" }} }}\n'
    for name, model in (("other", "other"), ("older", "older"), ("absent", "none"))
)
CLASSIFY, PREDICT = "tensorflow/serving/classify", "tensorflow/serving/predict"
METHOD = f'parameters {{ key: "TF_METHOD_NAME" value {{ string_value: "{CLASSIFY}" }} }}\n'
MODELS = {
    "main": ((1, 2), CONFIG + OTHERS),
    "other": ((1, 2, 3), CONFIG + METHOD),
    "older": ((1,), CONFIG),
}
PREDICTION = "/tensorflow.serving.PredictionService/"


@pytest.fixture(scope="module")
def ports(tmp_path_factory):
    models = tmp_path_factory.mktemp("models")
    for name, (versions, config) in MODELS.items():
        for version in versions:
            (models / name / str(version)).mkdir(parents=True)
        (models / name / "config.pbtxt").write_text(config)
    with core.Server(model_repository=str(models)) as server:
        yield server.serve(http_port=0, grpc_port=0)


@pytest.fixture
def call(ports):
    """call(method, request, response): answer of the gRPC port."""
    with grpc.insecure_channel(f"127.0.0.1:{ports['grpc']}") as channel:

        def called(method, request, response):
            send = channel.unary_unary(
                PREDICTION + method,
                lambda message: message.SerializeToString(),
                getattr(messages, response).FromString,
            )
            return send(request, timeout=20)

        yield called


@pytest.mark.parametrize(
    ("path", "names"),
    [("", ["other", "serving_default"]), ("/versions/1", ["older", "other", "serving_default"])],
)
def test_metadata_leave_out_signatures_whose_model_is_absent(ports, path, names):
    status, answer = Rest(ports["http"]).get(f"/v1/models/main{path}/metadata")

    assert status == 200
    assert sorted(answer["metadata"]["signature_def"]["signature_def"]) == names


def test_metadata_over_grpc_leave_out_signatures_whose_model_is_absent(call):
    request = messages.GetModelMetadataRequest(
        model_spec=messages.ModelSpec(name="main"), metadata_field=["signature_def"]
    )

    answer = call("GetModelMetadata", request, "GetModelMetadataResponse")

    found = messages.SignatureDefMap.FromString(answer.metadata["signature_def"].value)
    assert sorted(found.signature_def) == ["other", "serving_default"]


def test_metadata_have_the_method_of_each_signature(ports, call):
    _, answer = Rest(ports["http"]).get("/v1/models/main/metadata")
    there = answer["metadata"]["signature_def"]["signature_def"]
    assert {name: each["method_name"] for name, each in there.items()} == {
        "serving_default": PREDICT,
        "other": CLASSIFY,
    }

    request = messages.GetModelMetadataRequest(
        model_spec=messages.ModelSpec(name="main"), metadata_field=["signature_def"]
    )
    answer = call("GetModelMetadata", request, "GetModelMetadataResponse")
    found = messages.SignatureDefMap.FromString(answer.metadata["signature_def"].value)
    assert {name: each.method_name for name, each in found.signature_def.items()} == {
        "serving_default": PREDICT,
        "other": CLASSIFY,
    }


def test_the_version_that_answers_is_the_newest_one_of_the_model_in_the_request(call):
    request = messages.PredictRequest(
        model_spec=messages.ModelSpec(name="main", signature_name="other")
    )
    request.inputs["INPUT0"].CopyFrom(
        messages.TensorProto(dtype=1, float_val=[5], tensor_shape={"dim": [{"size": 1}] * 2})
    )

    assert call("Predict", request, "PredictResponse").model_spec.version.value == 2


def test_another_model_without_the_version_is_refused(ports):
    rest, body = Rest(ports["http"]), {"signature_name": "older", "instances": [[1]]}

    status, answer = rest.post("/v1/models/main:predict", body)

    assert status == 404
    assert "'older' version 2 is not found" in answer["error"]
    assert rest.post("/v1/models/main/versions/1:predict", body)[0] == 200
