"""REST: predict in both formats, status and metadata, and errors with names."""

import base64
import math

import pytest

from .conftest import Rest

PREDICT = "/v1/models/{}:predict"


def b64(data):
    return {"b64": base64.b64encode(data).decode()}


@pytest.fixture
def predict(rest):
    return lambda model, **document: rest.post(PREDICT.format(model), document)


# predict ------------------------------------------------------------------------


def test_values_of_the_only_input_are_rows(predict):
    assert predict("double", instances=[[1, 2], [3, 4.5]]) == (
        200,
        {"predictions": [[2.0, 4.0], [6.0, 9.0]]},
    )


def test_rows_may_name_their_inputs(predict):
    rows = [{"text": ["a"], "number": [2]}, {"text": ["bc"], "number": [3]}]

    assert predict("mixed", instances=rows) == (
        200,
        {
            "predictions": [
                {"upper": ["A"], "squared": [4]},
                {"upper": ["BC"], "squared": [9]},
            ]
        },
    )


def test_columns_have_the_tensor_of_each_input(predict):
    columns = {"text": [["a"], ["bc"]], "number": [[2], [3]]}

    assert predict("mixed", inputs=columns) == (
        200,
        {"outputs": {"upper": [["A"], ["BC"]], "squared": [[4], [9]]}},
    )


def test_a_column_of_the_only_input_needs_no_name(predict):
    assert predict("double", inputs=[[1], [2]]) == (200, {"outputs": [[2.0], [4.0]]})


def test_more_rows_than_a_batch_are_sent_in_parts(predict):
    rows = [[number] for number in range(11)]  # of max_batch_size 4

    assert predict("double", instances=rows) == (
        200,
        {"predictions": [[2.0 * number] for number in range(11)]},
    )


def test_a_part_that_fails_fails_the_request(predict):
    status, answer = predict("double", instances=[[1], [1], [1], [1], [-1e7]])

    assert status == 500
    assert "too low" in answer["error"]


def test_bytes_come_and_go_in_base64(predict):
    picture = b"\xff\x00\x80"

    assert predict("image", instances=[{"picture": [b64(picture)]}]) == (
        200,
        {"predictions": [{"picture_bytes": [b64(picture)], "size": [3]}]},
    )
    assert predict("image", instances=[[b64(b"ab")]])[1]["predictions"][0]["size"] == [2]


def test_bytes_that_are_no_text_are_base64_whatever_the_name_of_the_output(predict):
    status, answer = predict("mixed", inputs={"text": [[b64(b"\xff")]], "number": [[1]]})

    assert (status, answer["outputs"]["upper"]) == (200, [[b64(b"\xff")]])


def test_numbers_that_json_does_not_have_are_read_and_written(rest):
    status, answer = rest.post(PREDICT.format("odd"), b'{"instances": [[0], [-1], [Infinity]]}')

    assert status == 200
    first, second, third = answer["predictions"]
    assert first == [-math.inf] and math.isnan(second[0]) and third == [math.inf]


def test_a_model_without_batches_gets_the_tensor_as_it_is(predict):
    assert predict("whole", inputs=[1, -2]) == (200, {"outputs": [2, -4]})


@pytest.mark.parametrize("path", ["/versions/1", "/labels/stable"])
def test_a_version_has_a_number_or_a_label(rest, path):
    found = rest.post(f"/v1/models/double{path}:predict", {"instances": [[1]]})

    assert found == (200, {"predictions": [[2.0]]})


def test_rows_of_one_value_are_a_vector(predict, rest):
    assert predict("vector", instances=[1, 2, 3, 4, 5]) == (200, {"predictions": [1, 2, 3, 4, 5]})
    assert predict("vector", inputs=[7]) == (200, {"outputs": [7]})
    assert predict("vector", instances=[[8]]) == (200, {"predictions": [8]})

    _, answer = rest.get("/v1/models/vector/metadata")
    (found,) = answer["metadata"]["signature_def"]["signature_def"].values()
    assert found["inputs"]["INPUT0"]["tensor_shape"]["dim"] == [{"size": "-1", "name": ""}]


def test_vectors_of_values_are_answered_by_vectors(predict, rest):
    assert predict("one", instances=[1, 2, 3, 4, 5]) == (200, {"predictions": [2, 4, 6, 8, 10]})
    assert predict("one", inputs={"x": [1]}) == (200, {"outputs": [2]})
    assert predict("one", instances=[[1], [2]]) == (200, {"predictions": [[2], [4]]})

    assert rest.post("/v1/models/one:regress", {"examples": [{"x": 1.0}, {"x": 2.0}]}) == (
        200,
        {"results": [2, 4]},
    )
    assert rest.post("/v1/models/one:classify", {"examples": [{"x": 0.5}]}) == (
        200,
        {"results": [[["0", 1]]]},
    )


def test_another_model_answers_for_a_signature(predict, rest):
    row = {"text": ["a"], "number": [3]}
    status, answer = predict("double", signature_name="pairs", instances=[row])

    assert (status, answer) == (200, {"predictions": [{"upper": ["A"], "squared": [9]}]})
    _, answer = rest.get("/v1/models/double/metadata")
    found = answer["metadata"]["signature_def"]["signature_def"]
    assert {name: sorted(each["inputs"]) for name, each in found.items()} == {
        "serving_default": ["x"],
        "pairs": ["number", "text"],
    }


def test_the_signature_of_a_saved_model_has_its_name(predict):
    for name in ("classification", "serving_default"):
        assert predict("parser", signature_name=name, instances=[["a"]])[0] == 200


def test_the_explainer_of_a_model_answers_explain(rest):
    rows = {"instances": [[1, 2], [3, 4]]}
    assert rest.post("/v1/models/double:explain", rows) == (200, {"explanations": [[3], [7]]})
    columns = {"inputs": {"x": [[1, 2]]}}
    assert rest.post("/v1/models/double:explain", columns) == (200, {"explanations": [[3]]})

    status, answer = rest.post("/v1/models/total:explain", rows)
    assert status == 501
    assert answer["error"].startswith("model 'total' has no explainer; name a model with")


def test_the_signature_is_the_default_one(predict):
    assert predict("double", signature_name="serving_default", instances=[[1]])[0] == 200

    status, answer = predict("double", signature_name="other", instances=[[1]])

    assert status == 400
    assert (
        answer["error"] == "model 'double' has no signature 'other'; it has serving_default, pairs"
    )


@pytest.mark.parametrize(
    ("model", "document", "text"),
    [
        ("double", {}, "neither 'instances' nor 'inputs'"),
        ("double", {"instances": [[1]], "inputs": [[1]]}, "not both"),
        ("double", {"instances": []}, "at least one example"),
        ("double", {"instances": [[1], [2, 3]]}, "input 'x' has lists of unequal lengths"),
        ("double", {"instances": [["a"]]}, "input 'x' is FP32: expected numbers"),
        ("double", {"instances": [[1, "a" * 1000]]}, "input 'x' is FP32: expected numbers"),
        ("double", {"instances": [[0.5]] * (4 * 4096 + 1)}, "takes at most 16384 in one"),
        ("double", {"instances": [[True]]}, "input 'x' is FP32: expected numbers"),
        ("double", {"instances": [[1e300]]}, "a number is out of the range of FP32"),
        ("double", {"instances": [{"X": [1]}]}, "has no input 'X'; it has x; did you mean 'x'?"),
        ("double", {"instances": [[1], {"x": [1]}]}, "some examples of 'instances' are objects"),
        ("whole", {"inputs": [1.5, 2]}, "input 'x' is INT8: expected whole numbers"),
        ("whole", {"inputs": [1, 200]}, "200 is out of the range of INT8"),
        ("whole", {"inputs": [1, 2, 3]}, "unexpected shape for input 'x'"),
        ("whole", {"instances": [1, 2, 3]}, "unexpected shape"),
        ("mixed", {"instances": [["a"]]}, "need a model with one input; model 'mixed' has text, number"),
        ("mixed", {"instances": [{"text": ["a"], "number": [1]}, {"text": ["a"]}]}, "example 1 has other"),
        ("mixed", {"inputs": {"text": [[1]], "number": [[1]]}}, "input 'text' is BYTES"),
        ("mixed", {"inputs": {"text": [[{"b64": "?"}]], "number": [[1]]}}, 'has a wrong "b64"'),
        ("double", {"signature_name": 1, "instances": [[1]]}, "'signature_name' must be a string"),
    ],
)  # fmt: skip
def test_a_wrong_document_is_refused_with_what_is_wrong(predict, model, document, text):
    status, answer = predict(model, **document)

    assert status == 400
    assert text in answer["error"]


@pytest.mark.parametrize("body", [b"", b"[1]", b"{", b"nan", b"[" * 100_000])
def test_a_body_that_is_no_object_is_refused(rest, body):
    status, answer = rest.post(PREDICT.format("double"), body)

    assert status == 400
    assert "error" in answer


def test_a_decoupled_model_is_refused(predict):
    status, answer = predict("words", instances=[["a b"]])

    assert status == 501
    assert "is decoupled" in answer["error"]


def test_an_unknown_model_is_not_found(rest):
    status, answer = rest.post(PREDICT.format("doubel"), {"instances": [[1]]})

    assert status == 404
    assert "did you mean 'double'?" in answer["error"]


def test_an_unknown_label_names_the_known_ones(rest):
    status, answer = rest.post("/v1/models/double/labels/canary:predict", {"instances": [[1]]})

    assert status == 404
    assert answer["error"].endswith("has no version with the label 'canary'; it has stable")


def test_a_large_request_is_read_and_answered(predict):
    rows = [[number / 7] * 50_000 for number in range(4)]

    status, answer = predict("double", instances=rows)

    assert status == 200
    assert answer["predictions"][3][:2] == pytest.approx([6 / 7, 6 / 7])


# status and metadata ---------------------------------------------------------------


def test_the_status_has_the_state_of_each_version(rest):
    expected = {
        "version": "1",
        "state": "AVAILABLE",
        "status": {"error_code": "OK", "error_message": ""},
    }

    for path in ("double/versions/1", "double/labels/stable"):
        status, answer = rest.get(f"/v1/models/{path}")
        assert status == 200
        assert answer["model_version_status"] == [expected]


@pytest.mark.parametrize(
    ("reason", "state", "status", "serves"),
    [
        ("unloaded", "END", {"error_code": "OK", "error_message": ""}, False),
        # What core-memory-budget says of a model that its next request loads.
        ("unloaded: memory", "AVAILABLE", {"error_code": "OK", "error_message": ""}, True),
        ("no file", "END", {"error_code": "UNKNOWN", "error_message": "no file"}, False),
    ],
)
def test_the_state_of_a_version_that_is_not_loaded(
    server, ports, monkeypatch, reason, state, status, serves
):
    version = server._inner.manager.resolve("total")
    monkeypatch.setattr(version, "state", "UNAVAILABLE")
    monkeypatch.setattr(version, "reason", reason)
    rest = Rest(ports["http"])

    found = rest.get("/v1/models/total/versions/1")[1]

    assert found["model_version_status"] == [{"version": "1", "state": state, "status": status}]
    assert found["ready"] is serves


@pytest.mark.parametrize("path", ["absent/versions/1", "double/versions/7"])
def test_what_is_unknown_is_not_found(rest, path):
    status, answer = rest.get(f"/v1/models/{path}")

    assert status == 404
    assert "Could not find any versions of" in answer["error"]


def test_metadata_have_the_signature(rest):
    status, answer = rest.get("/v1/models/mixed/metadata")

    assert status == 200
    assert answer["model_spec"] == {"name": "mixed", "signature_name": "", "version": "1"}
    found = answer["metadata"]["signature_def"]["signature_def"]["serving_default"]
    assert found["method_name"] == "tensorflow/serving/predict"
    assert found["inputs"]["text"] == {
        "dtype": "DT_STRING",
        "tensor_shape": {
            "dim": [{"size": "-1", "name": ""}, {"size": "1", "name": ""}],
            "unknown_rank": False,
        },
        "name": "text:0",
    }
    assert found["outputs"]["squared"]["dtype"] == "DT_INT64"


def test_the_routes_are_described(rest):
    paths = rest.get("/openapi.json")[1]["paths"]

    assert any(path.endswith(":predict") for path in paths)


def test_the_openai_plugin_keeps_its_paths(rest):
    pytest.importorskip("frontend_openai")

    assert rest.get("/v1/models")[1]["object"] == "list"
