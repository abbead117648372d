"""Requests that a model's configuration does not allow, and failing models."""

import pytest
import tritonclient.http
from conformance.protocol import data_of, grpc_input, refused, tensor, texts
from tritonclient.utils import InferenceServerException

ROW = [1, 2, 3, 4]


def pair(left, right):
    return {"inputs": [tensor("INPUT0", *left), tensor("INPUT1", *right)]}


@pytest.mark.parametrize(
    "body",
    [
        b"hello",
        b'{"inputs":[',
        b"[]",
        b'"text"',
        b"1",
        b"null",
        b"{}",
        b"{",
        b"\x00\x01\x02",
        b'{"inputs":null}',
        b'{"inputs":{}}',
        b'{"inputs":"x"}',
        b'{"inputs":[1]}',
        b'{"inputs":[null]}',
        b'{"inputs":[[]]}',
    ],
)
def test_body_that_is_no_request_is_refused(basic, body):
    refused(basic.infer("plain", body))


@pytest.mark.parametrize("missing", ["name", "datatype", "shape", "data"])
def test_input_needs_every_member(basic, missing):
    entry = tensor("INPUT0", [1])
    del entry[missing]
    refused(basic.infer("plain", {"inputs": [entry]}))


@pytest.mark.parametrize(
    "member,value",
    [
        ("name", 1),
        ("name", None),
        ("datatype", 32),
        ("shape", 1),
        ("shape", "1"),
        ("shape", ["1"]),
        ("shape", [1.5]),
        ("shape", [None]),
        ("data", 1),
        ("data", None),
        ("data", "1"),
    ],
)
def test_member_of_the_wrong_type_is_refused(basic, member, value):
    refused(basic.infer("plain", {"inputs": [{**tensor("INPUT0", [1]), member: value}]}))


def test_empty_list_of_inputs_is_refused(basic):
    assert "INPUT0" in refused(basic.infer("plain", {"inputs": []}), 400)


def test_unknown_data_type_is_refused(basic):
    refused(basic.infer("plain", {"inputs": [tensor("INPUT0", [1], datatype="FLOAT")]}), 400)


def test_data_type_of_the_config_is_required(basic):
    text = refused(basic.infer("plain", {"inputs": [tensor("INPUT0", [1], datatype="INT32")]}), 400)
    assert "INT32" in text and "FP32" in text


def test_unknown_input_is_refused_by_name(basic):
    assert "WRONG" in refused(basic.infer("plain", {"inputs": [tensor("WRONG", [1])]}), 400)


def test_input_given_twice_is_refused(basic):
    refused(basic.infer("plain", {"inputs": [tensor("INPUT0", [1]), tensor("INPUT0", [1])]}), 400)


def test_additional_input_is_refused(basic):
    refused(basic.infer("plain", {"inputs": [tensor("INPUT0", [1]), tensor("MORE", [1])]}), 400)


def test_missing_input_is_named(basic):
    text = refused(basic.infer("add_sub", {"inputs": [tensor("INPUT0", ROW, [1, 4])]}), 400)
    assert "INPUT1" in text


def test_missing_required_input_is_refused_when_others_are_optional(basic):
    refused(basic.infer("optional_inputs", {"inputs": []}), 400)


@pytest.mark.parametrize("shape,data", [([1, 1], [1]), ([], [1])])
def test_rank_of_the_config_is_required(basic, shape, data):
    refused(basic.infer("plain", {"inputs": [tensor("INPUT0", data, shape)]}), 400)


def test_fixed_dimension_is_required(basic):
    text = refused(basic.infer("add_sub", pair(([1, 2, 3], [1, 3]), ([1, 2, 3], [1, 3]))), 400)
    assert "[1,3]" in text


def test_batch_dimension_is_required(basic):
    refused(basic.infer("add_sub", pair((ROW, [4]), (ROW, [4]))), 400)


def test_batch_larger_than_the_maximum_is_refused(basic):
    data = [0] * 36
    text = refused(basic.infer("add_sub", pair((data, [9, 4]), (data, [9, 4]))), 400)
    assert "8" in text


def test_batch_of_the_maximum_is_allowed(basic):
    data = [1] * 32
    assert data_of(basic.infer("add_sub", pair((data, [8, 4]), (data, [8, 4])))) == [2] * 32


def test_inputs_must_have_the_same_batch_size(basic):
    refused(basic.infer("add_sub", pair((ROW * 2, [2, 4]), (ROW, [1, 4]))), 400)


@pytest.mark.parametrize("count", [1, 3, 5])
def test_number_of_elements_must_match_the_shape(basic, count):
    refused(basic.infer("identity_fp32", {"inputs": [tensor("INPUT0", [1] * count, [2, 2])]}))


def test_error_text_is_in_a_json_object_with_the_single_member_error(basic):
    response = basic.infer("plain", {"inputs": []})
    assert list(response.json) == ["error"]


def test_server_answers_rightly_after_errors(basic):
    for _ in range(20):
        basic.infer("plain", b"{")
        basic.infer("plain", {"inputs": []})
    assert data_of(basic.infer("plain", {"inputs": [tensor("INPUT0", [21])]})) == [42]


def fault(server, mode):
    return server.infer("faulty", {"inputs": [tensor("MODE", [mode], datatype="BYTES")]})


@pytest.mark.parametrize(
    "mode,text",
    [("raise", "raised by the model"), ("model_exception", "model exception of the model")],
)
def test_exception_in_execute_answers_500_with_its_text(basic, mode, text):
    assert text in refused(fault(basic, mode), 500)


def test_exception_in_execute_does_not_stop_the_model(basic):
    refused(fault(basic, "raise"), 500)
    assert data_of(fault(basic, "ok")) == ["ok"]


def test_error_of_a_response_answers_500_with_just_its_text(basic):
    assert refused(fault(basic, "error"), 500) == "error of the response"


@pytest.mark.parametrize(
    "code,status",
    [
        ("INTERNAL", 500),
        ("NOT_FOUND", 404),
        ("INVALID_ARG", 400),
        ("UNAVAILABLE", 503),
        ("UNSUPPORTED", 501),
        ("ALREADY_EXISTS", 400),
        ("UNKNOWN", 400),
    ],
)
def test_code_of_an_error_decides_the_http_status(basic, code, status):
    assert refused(fault(basic, f"code:{code}"), status) == "error with a code"


@pytest.mark.parametrize(
    "code,status",
    [
        ("INTERNAL", "INTERNAL"),
        ("NOT_FOUND", "NOT_FOUND"),
        ("INVALID_ARG", "INVALID_ARGUMENT"),
        ("UNAVAILABLE", "UNAVAILABLE"),
        ("UNSUPPORTED", "UNIMPLEMENTED"),
        ("ALREADY_EXISTS", "ALREADY_EXISTS"),
        ("UNKNOWN", "UNKNOWN"),
        ("CANCELLED", "CANCELLED"),
    ],
)
def test_code_of_an_error_decides_the_grpc_status(grpc, code, status):
    with pytest.raises(InferenceServerException) as error:
        grpc.infer("faulty", [grpc_input("MODE", texts(f"code:{code}"), "BYTES")])
    assert error.value.status() == f"StatusCode.{status}"
    assert error.value.message() == "error with a code"


def test_error_text_may_hold_any_character(basic):
    assert refused(fault(basic, "unicode"), 500) == 'snow \u2603 and "quotes"\nand a line'


def test_grpc_error_text_may_hold_any_character(grpc):
    with pytest.raises(InferenceServerException) as error:
        grpc.infer("faulty", [grpc_input("MODE", texts("unicode"), "BYTES")])
    assert "snow \u2603" in error.value.message()


def test_output_that_the_model_leaves_out_is_left_out_of_the_answer(basic):
    response = fault(basic, "missing_output")
    assert [entry["name"] for entry in response.json["outputs"]] == ["OUTPUT0"]


def test_http_client_gives_status_and_text_of_an_error(http):
    with pytest.raises(InferenceServerException) as error:
        http.infer("plain", [])
    assert error.value.status() == "400"
    assert "INPUT0" in error.value.message()


def test_http_client_raises_for_an_unknown_model(http):
    entry = tritonclient.http.InferInput("INPUT0", [1], "FP32")
    entry.set_data_from_numpy(__import__("numpy").ones(1, "float32"))
    with pytest.raises(InferenceServerException) as error:
        http.infer("absent", [entry])
    assert error.value.status() == "404"


def test_a_request_of_no_rows_is_refused_where_a_model_batches(basic):
    left, right = [tensor(name, [], [0, 4]) for name in ("INPUT0", "INPUT1")]

    refused(basic.infer("add_sub", {"inputs": [left, right]}))

    nothing = basic.infer("plain", {"inputs": [tensor("INPUT0", [], [0])]})
    assert nothing.status == 200 and nothing.json["outputs"][0]["shape"] == [0]
