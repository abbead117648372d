"""gRPC: every method of PredictionService and ModelService, with the messages that TensorFlow sends."""

import json

import grpc
import numpy as np
import pytest
from frontend_tfserving.rpc import messages

import core
from core import dtypes

from .protos import examples, features, spec, tensor

PREDICTION = "/tensorflow.serving.PredictionService/"
MODELS = "/tensorflow.serving.ModelService/"


@pytest.fixture
def call(channel):
    def called(method, request, response, service=PREDICTION):
        send = channel.unary_unary(
            service + method,
            lambda message: message.SerializeToString(),
            getattr(messages, response).FromString,
        )
        return send(request, timeout=20)

    return called


# Predict --------------------------------------------------------------------------


def test_predict_answers_with_the_values_one_by_one(call):
    request = messages.PredictRequest(model_spec=spec("double"))
    request.inputs["x"].CopyFrom(tensor(dtypes.FP32, [2, 2], float_val=[1, 2, 3, 4]))

    answer = call("Predict", request, "PredictResponse")

    found = answer.outputs["y"]
    assert list(found.float_val) == [2, 4, 6, 8]
    assert [dim.size for dim in found.tensor_shape.dim] == [2, 2]
    assert (found.dtype, found.tensor_content) == (1, b"")
    assert answer.model_spec.name == "double"
    assert answer.model_spec.version.value == 1
    assert answer.model_spec.signature_name == "serving_default"


def test_predict_takes_the_bytes_of_a_tensor(call):
    content = np.array([[1, 2]], np.float32).tobytes()
    request = messages.PredictRequest(model_spec=spec("double"))
    request.inputs["x"].CopyFrom(tensor(dtypes.FP32, [1, 2], tensor_content=content))

    assert list(call("Predict", request, "PredictResponse").outputs["y"].float_val) == [2, 4]


def test_predict_sends_more_rows_than_a_batch_in_parts(call):
    request = messages.PredictRequest(model_spec=spec("double"))
    request.inputs["x"].CopyFrom(tensor(dtypes.FP32, [9, 1], float_val=range(9)))

    found = call("Predict", request, "PredictResponse").outputs["y"]

    assert list(found.float_val) == [2.0 * number for number in range(9)]


def test_the_filter_chooses_outputs(call):
    request = messages.PredictRequest(model_spec=spec("mixed"), output_filter=["squared"])
    request.inputs["text"].CopyFrom(tensor(dtypes.BYTES, [1, 1], string_val=[b"a"]))
    request.inputs["number"].CopyFrom(tensor(dtypes.INT64, [1, 1], int64_val=[3]))

    answer = call("Predict", request, "PredictResponse")

    assert list(answer.outputs) == ["squared"]
    assert list(answer.outputs["squared"].int64_val) == [9]


def test_predict_of_a_vector(call):
    request = messages.PredictRequest(model_spec=spec("vector"))
    request.inputs["INPUT0"].CopyFrom(tensor(dtypes.FP32, [6], float_val=range(6)))

    found = call("Predict", request, "PredictResponse").outputs["OUTPUT0"]

    assert [dim.size for dim in found.tensor_shape.dim] == [6]
    assert list(found.float_val) == [0, 1, 2, 3, 4, 5]


def test_a_vector_of_values_is_answered_by_a_vector(call):
    request = messages.PredictRequest(model_spec=spec("one"))
    request.inputs["x"].CopyFrom(tensor(dtypes.FP32, [3], float_val=[1, 2, 5]))

    found = call("Predict", request, "PredictResponse").outputs["y"]

    assert [dim.size for dim in found.tensor_shape.dim] == [3]
    assert list(found.float_val) == [2, 4, 10]


def test_a_signature_of_another_model_keeps_the_name_of_the_request(call):
    request = messages.PredictRequest(model_spec=spec("double", signature_name="pairs"))
    request.inputs["text"].CopyFrom(tensor(dtypes.BYTES, [1, 1], string_val=[b"a"]))
    request.inputs["number"].CopyFrom(tensor(dtypes.INT64, [1, 1], int64_val=[3]))

    answer = call("Predict", request, "PredictResponse")

    assert list(answer.outputs["upper"].string_val) == [b"A"]
    assert (answer.model_spec.name, answer.model_spec.signature_name) == ("double", "pairs")


def test_a_model_that_parses_examples_gets_them_serialized(call):
    given = messages.Input()
    given.example_list_with_context.context.CopyFrom(features(mood=[b"x"]))
    given.example_list_with_context.examples.append(features(age=[3]))
    request = messages.ClassificationRequest(model_spec=spec("parser"), input=given)

    answer = call("Classify", request, "ClassificationResponse")

    (found,) = answer.result.classifications[0].classes
    example = messages.Example.FromString(found.label.encode())
    assert list(example.features.feature["age"].int64_list.value) == [3]
    assert list(example.features.feature["mood"].bytes_list.value) == [b"x"]


def test_a_version_is_a_number_or_a_label(call):
    for choice in ({"version": messages.Int64Value(value=1)}, {"version_label": "stable"}):
        request = messages.PredictRequest(model_spec=spec("double", **choice))
        request.inputs["x"].CopyFrom(tensor(dtypes.FP32, [1, 1], float_val=[1]))
        assert list(call("Predict", request, "PredictResponse").outputs["y"].float_val) == [2]


@pytest.mark.parametrize(
    ("model", "proto", "code", "text"),
    [
        (spec("doubel"), {}, "NOT_FOUND", "did you mean 'double'?"),
        (spec("double", version_label="x"), {}, "NOT_FOUND", "no version with the label 'x'"),
        (spec(""), {}, "INVALID_ARGUMENT", "model_spec has no name"),
        (spec("double", signature_name="x"), {}, "INVALID_ARGUMENT", "has no signature 'x'"),
        (spec("words"), {}, "UNIMPLEMENTED", "is decoupled"),
        (spec("double"), {"float_val": [1, 2]}, "INVALID_ARGUMENT", "2 values in float_val"),
        (spec("double"), {"tensor_content": b"abc"}, "INVALID_ARGUMENT", "3 bytes in tensor_content"),
    ],
)  # fmt: skip
def test_a_wrong_request_is_refused_with_what_is_wrong(call, model, proto, code, text):
    request = messages.PredictRequest(model_spec=model)
    request.inputs["x"].CopyFrom(tensor(dtypes.FP32, [1, 1], **proto))

    with pytest.raises(grpc.RpcError) as error:
        call("Predict", request, "PredictResponse")

    assert error.value.code().name == code
    assert text in error.value.details()


def counted(text):
    """A model that tells its tokens, as language models do."""
    return {"text_output": text, "num_output_tokens": np.array([[7]], np.uint32)}


def test_the_access_log_has_the_tokens_of_a_call(tmp_path):
    log = tmp_path / "access.log"
    with core.Server(access_log=str(log)) as server:
        outputs = {"text_output": ("BYTES", [1]), "num_output_tokens": ("UINT32", [1])}
        rows = {"batching": True, "max_batch_size": 4}
        server.bind("llm", counted, inputs={"text": ("BYTES", [1])}, outputs=outputs, **rows)
        port = server.serve(http_port=0, grpc_port=0)["grpc"]
        request = messages.PredictRequest(model_spec=spec("llm"))
        request.inputs["text"].CopyFrom(tensor(dtypes.BYTES, [1, 1], string_val=[b"a"]))
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            channel.unary_unary(f"{PREDICTION}Predict")(request.SerializeToString(), timeout=20)

    line = json.loads(log.read_text().splitlines()[0])
    assert (line["path"], line["tokens"]) == (f"{PREDICTION}Predict", 7)


# Classify, Regress, MultiInference ---------------------------------------------------


def test_classify_and_regress_read_examples(call):
    given_examples = examples(features(x=[0.25]), features(x=[1.0]))
    request = messages.ClassificationRequest(model_spec=spec("scores"), input=given_examples)

    found = call("Classify", request, "ClassificationResponse").result.classifications

    pairs = [[(each.label, each.score) for each in entry.classes] for entry in found]
    assert pairs == [[("0", 0.25), ("1", 0.75)], [("0", 1.0), ("1", 0.0)]]

    request = messages.RegressionRequest(model_spec=spec("total"), input=given_examples)
    found = call("Regress", request, "RegressionResponse").result.regressions
    assert [each.value for each in found] == [0.25, 1.0]


def test_the_context_belongs_to_every_example(call):
    given_examples = messages.Input(
        example_list_with_context=messages.ExampleListWithContext(
            examples=[messages.Example(), messages.Example()], context=features(x=[2, 3])
        )
    )
    request = messages.RegressionRequest(model_spec=spec("total"), input=given_examples)

    found = call("Regress", request, "RegressionResponse").result.regressions

    assert [each.value for each in found] == [5, 5]


def test_multi_inference_answers_each_task(call):
    tasks = [
        messages.InferenceTask(model_spec=spec(model), method_name=f"tensorflow/serving/{method}")
        for model, method in (("scores", "classify"), ("total", "regress"))
    ]
    request = messages.MultiInferenceRequest(tasks=tasks, input=examples(features(x=[0.5])))

    first, second = call("MultiInference", request, "MultiInferenceResponse").results

    (entry,) = first.classification_result.classifications
    assert [each.score for each in entry.classes] == [0.5, 0.5]
    assert second.regression_result.regressions[0].value == 0.5
    assert (first.model_spec.name, second.model_spec.name) == ("scores", "total")


def test_very_many_tasks_are_refused(call):
    task = messages.InferenceTask(model_spec=spec("total"))
    request = messages.MultiInferenceRequest(tasks=[task] * 101, input=examples(features(x=[0.5])))

    with pytest.raises(grpc.RpcError) as error:
        call("MultiInference", request, "MultiInferenceResponse")

    assert "the request has 101 tasks; at most 100 are accepted" in error.value.details()


def test_many_features_of_a_context_are_not_repeated_for_many_examples(call):
    context = messages.Example()
    for number in range(301):
        context.features.feature[str(number)].SetInParent()
    found = messages.ExampleListWithContext(examples=[messages.Example()] * 3334, context=context)
    given_examples = messages.Input(example_list_with_context=found)
    request = messages.RegressionRequest(model_spec=spec("total"), input=given_examples)

    with pytest.raises(grpc.RpcError) as error:
        call("Regress", request, "RegressionResponse")

    assert "301 features for 3334 examples; at most 1000000 are" in error.value.details()


@pytest.mark.parametrize(
    ("given_examples", "text"),
    [
        (examples(), "the request has no examples"),
        (examples(features(x=[1.0]), features(y=[1.0])), "example 1 has other features"),
        (examples(features(X=[1.0])), "has no input 'X'"),
        (examples(features(x=[b"a"])), "the feature 'x' has bytes, the input is FP32"),
        (examples(features(x=[1.0]), features(x=[1.0, 2.0])), "lists of unequal lengths"),
    ],
)
def test_wrong_examples_are_refused(call, given_examples, text):
    request = messages.RegressionRequest(model_spec=spec("total"), input=given_examples)

    with pytest.raises(grpc.RpcError) as error:
        call("Regress", request, "RegressionResponse")

    assert text in error.value.details()


@pytest.mark.parametrize(
    ("model", "values", "dtype"),
    [("whole", [1, 200], "INT8"), ("half", [1e6], "FP16"), ("half", [-65520], "FP16")],
)
def test_a_feature_outside_of_the_range_of_the_input_is_refused(call, model, values, dtype):
    request = messages.RegressionRequest(model_spec=spec(model), input=examples(features(x=values)))

    with pytest.raises(grpc.RpcError) as error:
        call("Regress", request, "RegressionResponse")

    assert f"outside of the range of {dtype}" in error.value.details()


def test_features_of_fp16_may_be_infinite(call):
    given_examples = examples(features(x=[float("inf")]), features(x=[65504.0 / 2]))
    request = messages.RegressionRequest(model_spec=spec("half"), input=given_examples)

    found = call("Regress", request, "RegressionResponse").result.regressions

    assert [each.value for each in found] == [float("inf"), 65504.0]


def test_a_large_context_is_not_repeated_for_many_examples(call):
    given_examples = messages.Input(
        example_list_with_context=messages.ExampleListWithContext(
            examples=[messages.Example()] * 2000, context=features(x=[0.5] * 2000)
        )
    )

    with pytest.raises(grpc.RpcError) as error:
        call(
            "Regress",
            messages.RegressionRequest(model_spec=spec("total"), input=given_examples),
            "RegressionResponse",
        )

    assert "the context is too large" in error.value.details()


# Metadata and states ---------------------------------------------------------------------


def test_metadata_have_the_signature(call):
    request = messages.GetModelMetadataRequest(
        model_spec=spec("mixed"), metadata_field=["signature_def"]
    )

    answer = call("GetModelMetadata", request, "GetModelMetadataResponse")

    found = answer.metadata["signature_def"]
    assert found.type_url.endswith("/tensorflow.serving.SignatureDefMap")
    signatures = messages.SignatureDefMap.FromString(found.value)
    default = signatures.signature_def["serving_default"]
    assert default.inputs["text"].dtype == 7
    assert [dim.size for dim in default.outputs["squared"].tensor_shape.dim] == [-1, 1]


def test_states_are_those_of_the_versions(call):
    request = messages.GetModelStatusRequest(model_spec=spec("double"))

    answer = call("GetModelStatus", request, "GetModelStatusResponse", MODELS)

    (found,) = answer.model_version_status
    assert (found.version, found.state) == (1, messages.ModelVersionStatus.AVAILABLE)
    assert found.status.error_code == 0


def test_the_state_of_an_unknown_model_is_not_found(call):
    request = messages.GetModelStatusRequest(model_spec=spec("absent"))

    with pytest.raises(grpc.RpcError) as error:
        call("GetModelStatus", request, "GetModelStatusResponse", MODELS)

    assert error.value.code() is grpc.StatusCode.NOT_FOUND
