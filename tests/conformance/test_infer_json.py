"""Inference over HTTP with tensors in JSON."""

import json
import math

import numpy as np
import pytest
from conformance.protocol import SAMPLES, data_of, outputs_of, refused, tensor

FOUR = [1, 2, 3, 4]


def add_sub(**more):
    return {
        "inputs": [tensor("INPUT0", FOUR, [1, 4]), tensor("INPUT1", [1, 1, 1, 1], [1, 4])],
        **more,
    }


def test_answer_has_model_name_version_and_outputs(basic):
    answer = basic.infer("plain", {"inputs": [tensor("INPUT0", [1, 2, 3])]}).json
    assert answer == {
        "model_name": "plain",
        "model_version": "1",
        "outputs": [{"name": "OUTPUT0", "datatype": "FP32", "shape": [3], "data": [2.0, 4.0, 6.0]}],
    }


def test_answer_without_binary_parts_is_json(basic):
    response = basic.infer("plain", {"inputs": [tensor("INPUT0", [1])]})
    assert response.headers["Content-Type"] == "application/json"
    assert int(response.headers["Content-Length"]) == len(response.body)


def test_request_id_comes_back(basic):
    answer = basic.infer("plain", {"id": "abc-1", "inputs": [tensor("INPUT0", [1])]}).json
    assert answer["id"] == "abc-1"


def test_no_request_id_gives_no_id(basic):
    assert "id" not in basic.infer("plain", {"inputs": [tensor("INPUT0", [1])]}).json


def test_request_id_must_be_a_string(basic):
    refused(basic.infer("plain", {"id": 5, "inputs": [tensor("INPUT0", [1])]}))


def test_both_outputs_come_when_none_is_named(basic):
    found = outputs_of(basic.infer("add_sub", add_sub()))
    assert found["OUTPUT0"]["data"] == [2, 3, 4, 5]
    assert found["OUTPUT1"]["data"] == [0, 1, 2, 3]


def test_empty_list_of_outputs_means_all(basic):
    assert set(outputs_of(basic.infer("add_sub", add_sub(outputs=[])))) == {"OUTPUT0", "OUTPUT1"}


def test_only_named_outputs_come(basic):
    found = outputs_of(basic.infer("add_sub", add_sub(outputs=[{"name": "OUTPUT1"}])))
    assert list(found) == ["OUTPUT1"]


def test_output_named_twice_comes_once(basic):
    response = basic.infer("add_sub", add_sub(outputs=[{"name": "OUTPUT1"}, {"name": "OUTPUT1"}]))
    assert [entry["name"] for entry in response.json["outputs"]] == ["OUTPUT1"]


def test_unknown_output_is_refused(basic):
    assert "OUTPUT7" in refused(basic.infer("add_sub", add_sub(outputs=[{"name": "OUTPUT7"}])), 400)


def test_nested_data_is_the_same_as_flat_data(basic):
    nested = basic.infer("identity_fp32", {"inputs": [tensor("INPUT0", [[1, 2], [3, 4]], [2, 2])]})
    flat = basic.infer("identity_fp32", {"inputs": [tensor("INPUT0", FOUR, [2, 2])]})
    assert nested.body == flat.body


def test_output_data_is_flat_in_row_major_order(basic):
    response = basic.infer(
        "fixed_shape", {"inputs": [tensor("INPUT0", [[1, 2, 3], [4, 5, 6]], [2, 3], "INT64")]}
    )
    output = outputs_of(response)["OUTPUT0"]
    assert output["shape"] == [3, 2]
    assert output["data"] == [1, 4, 2, 5, 3, 6]


@pytest.mark.parametrize("dtype", [name for name in SAMPLES if name != "FP16"])
def test_every_json_data_type_comes_back_as_it_was(basic, dtype):
    sample = SAMPLES[dtype]
    data = [item.decode() if dtype == "BYTES" else item for item in sample.ravel().tolist()]
    response = basic.infer(
        f"identity_{dtype.lower()}", {"inputs": [tensor("INPUT0", data, list(sample.shape), dtype)]}
    )
    output = outputs_of(response)["OUTPUT0"]
    assert output["datatype"] == dtype
    assert output["shape"] == list(sample.shape)
    if dtype in ("FP32", "FP64"):
        assert np.array_equal(np.array(output["data"], sample.dtype), sample.ravel())
    else:
        assert output["data"] == data


@pytest.mark.parametrize("dtype", ["FP16", "BF16"])
def test_half_precision_is_refused_as_json_input(basic, dtype):
    assert dtype in refused(
        basic.infer(
            f"identity_{dtype.lower()}", {"inputs": [tensor("INPUT0", [1], [1, 1], dtype)]}
        ),
        400,
    )


@pytest.mark.parametrize(
    "data,dtype",
    [
        (["1"], "FP32"),
        ([True], "FP32"),
        ([None], "FP32"),
        ([{}], "FP32"),
        ([1.5], "INT32"),
        (["1"], "INT64"),
        ([-1], "UINT32"),
        ([1], "BOOL"),
        (["true"], "BOOL"),
        ([1], "BYTES"),
        ([None], "BYTES"),
    ],
)
def test_json_value_of_the_wrong_type_is_refused(basic, data, dtype):
    refused(
        basic.infer(
            f"identity_{dtype.lower()}", {"inputs": [tensor("INPUT0", data, [1, 1], dtype)]}
        )
    )


def test_whole_numbers_are_right_for_floats(basic):
    assert data_of(basic.infer("plain", {"inputs": [tensor("INPUT0", [1, -2])]})) == [2.0, -4.0]


def test_double_precision_survives_json(basic):
    values = [0.1, -2.5, 123456.789, math.pi]
    response = basic.infer("identity_fp64", {"inputs": [tensor("INPUT0", values, [1, 4], "FP64")]})
    assert data_of(response) == values


def test_escapes_in_json_strings_are_understood(basic):
    body = (
        b'{"inputs":[{"name":"INPUT0","datatype":"BYTES","shape":[1,3],'
        b'"data":["\\u2603","\\ud83d\\ude00","a\\n\\"b\\\\"]}]}'
    )
    assert data_of(basic.infer("identity_bytes", body)) == ["\u2603", "\U0001f600", 'a\n"b\\']


def test_zero_elements_are_allowed(basic):
    output = outputs_of(basic.infer("plain", {"inputs": [tensor("INPUT0", [])]}))["OUTPUT0"]
    assert output["shape"] == [0]
    assert output["data"] == []


def test_unknown_members_of_the_request_are_ignored(basic):
    response = basic.infer(
        "plain", {"unknown": [1], "inputs": [{**tensor("INPUT0", [1]), "unknown": {}}]}
    )
    assert data_of(response) == [2]


def test_whitespace_in_the_json_is_ignored(basic):
    body = json.dumps({"inputs": [tensor("INPUT0", [1, 2])]}, indent=8)
    assert data_of(basic.infer("plain", "\n\n" + body + "\n ")) == [2, 4]


def test_content_type_of_the_request_does_not_matter(basic):
    body = {"inputs": [tensor("INPUT0", [1])]}
    for content_type in (
        "text/plain",
        "application/octet-stream",
        "application/x-www-form-urlencoded",
    ):
        assert data_of(basic.infer("plain", body, headers={"Content-Type": content_type})) == [2]


def test_batch_rows_are_kept_in_order(basic):
    rows = [[float(row * 4 + column) for column in range(4)] for row in range(8)]
    response = basic.infer(
        "add_sub", {"inputs": [tensor("INPUT0", rows, [8, 4]), tensor("INPUT1", [0] * 32, [8, 4])]}
    )
    assert data_of(response) == [value for row in rows for value in row]


def test_inputs_may_come_in_any_order(basic):
    response = basic.infer(
        "add_sub",
        {"inputs": [tensor("INPUT1", [1, 1, 1, 1], [1, 4]), tensor("INPUT0", FOUR, [1, 4])]},
    )
    assert data_of(response, "OUTPUT1") == [0, 1, 2, 3]


def test_reshape_hides_the_last_dimension_from_the_model(basic):
    output = outputs_of(basic.infer("reshaped", {"inputs": [tensor("INPUT0", [5, 6], [2, 1])]}))[
        "OUTPUT0"
    ]
    assert output["shape"] == [2, 1]
    assert output["data"] == [1, 1]


def test_optional_inputs_may_be_left_out(basic):
    pair = tensor("INPUT0", [1, 2], [1, 2], "INT32")
    second = tensor("INPUT1", [1, 2], [1, 2], "INT32")
    text = tensor("INPUT2", ["x"], [1, 1], "BYTES")
    for inputs, names in (
        ([pair], "INPUT0"),
        ([pair, second], "INPUT0,INPUT1"),
        ([pair, text], "INPUT0,INPUT2"),
        ([text, second, pair], "INPUT0,INPUT1,INPUT2"),
    ):
        assert data_of(basic.infer("optional_inputs", {"inputs": inputs})) == [names]


def test_parameters_reach_the_model(basic):
    response = basic.infer(
        "params_echo",
        {
            "id": "q",
            "parameters": {"word": "x", "number": 7, "truth": True, "negative": -3},
            "inputs": [tensor("INPUT0", [1], [1, 1], "INT32")],
        },
    )
    seen = json.loads(data_of(response)[0])
    assert seen["parameters"] == {"word": "x", "number": 7, "truth": True, "negative": -3}
    assert seen["request_id"] == "q"


@pytest.mark.parametrize("value", [None, {}, []])
def test_parameter_must_be_a_scalar(basic, value):
    refused(
        basic.infer(
            "params_echo",
            {"parameters": {"word": value}, "inputs": [tensor("INPUT0", [1], [1, 1], "INT32")]},
        ),
        400,
    )


def test_parameters_of_the_server_are_reserved(basic):
    assert "triton_" in refused(
        basic.infer(
            "params_echo",
            {"parameters": {"triton_own": 1}, "inputs": [tensor("INPUT0", [1], [1, 1], "INT32")]},
        ),
        400,
    )


def test_timeout_and_sequence_parameters_are_not_passed_on_as_parameters(basic):
    response = basic.infer(
        "params_echo",
        {
            "parameters": {
                "timeout": 123456,
                "sequence_id": 9,
                "sequence_start": True,
                "sequence_end": True,
                "priority": 0,
                "binary_data_output": False,
            },
            "inputs": [tensor("INPUT0", [1], [1, 1], "INT32")],
        },
    )
    seen = json.loads(data_of(response)[0])
    assert seen["parameters"] == {}
    assert seen["timeout"] == 123456
    assert seen["correlation_id"] == 9
    assert seen["flags"] == 3


def test_correlation_id_may_be_a_string(basic):
    response = basic.infer(
        "params_echo",
        {"parameters": {"sequence_id": "mine"}, "inputs": [tensor("INPUT0", [1], [1, 1], "INT32")]},
    )
    assert json.loads(data_of(response)[0])["correlation_id"] == "mine"


def test_model_sees_the_requested_outputs(basic):
    response = basic.infer(
        "params_echo",
        {"inputs": [tensor("INPUT0", [1], [1, 1], "INT32")], "outputs": [{"name": "OUTPUT0"}]},
    )
    assert json.loads(data_of(response)[0])["outputs"] == ["OUTPUT0"]


def test_model_parameters_of_the_config_reach_the_model(basic):
    response = basic.infer("params_echo", {"inputs": [tensor("INPUT0", [1], [1, 1], "INT32")]})
    assert json.loads(data_of(response)[0])["config_parameters"] == {
        "first": "one",
        "second": "two words",
    }


def test_model_learns_its_name_version_and_place(basic):
    response = basic.infer("params_echo", {"inputs": [tensor("INPUT0", [1], [1, 1], "INT32")]})
    args = json.loads(data_of(response)[0])["args"]
    assert args["model_name"] == "params_echo"
    assert args["model_version"] == "1"
    assert args["model_instance_kind"] == "CPU"
    assert args["model_instance_device_id"] == "0"
    assert args["model_instance_name"].startswith("params_echo")
    assert args["model_repository"].endswith("params_echo")


def test_answer_of_one_version_names_it(basic):
    for version in ("1", "2", "3"):
        response = basic.infer(
            "versioned_all", {"inputs": [tensor("INPUT0", [0], datatype="INT32")]}, version=version
        )
        assert response.json["model_version"] == version
        assert data_of(response) == [int(version)]


def test_latest_version_answers_when_none_is_named(basic):
    response = basic.infer("versioned_all", {"inputs": [tensor("INPUT0", [0], datatype="INT32")]})
    assert data_of(response) == [3]
    assert response.json["model_version"] == "3"


def test_unknown_model_answers_404(basic):
    assert "absent" in refused(basic.infer("absent", {"inputs": []}), 404)


def test_unknown_version_answers_404(basic):
    refused(basic.infer("plain", {"inputs": [tensor("INPUT0", [1])]}, version="9"), 404)
