"""The binary tensor data extension of HTTP."""

import json
import struct

import numpy as np
import pytest
from conformance.protocol import (
    SAMPLES,
    binary_tensor,
    data_of,
    http_input,
    http_output,
    infer_binary,
    outputs_of,
    pack_bytes,
    refused,
    split_binary,
    tensor,
)

TWO = np.array([1, 2], "<f4").tobytes()


def test_binary_input_gives_json_output(basic):
    response = infer_binary(basic, "plain", {"inputs": [binary_tensor("INPUT0", 8, [2])]}, TWO)
    assert response.headers["Content-Type"] == "application/json"
    assert data_of(response) == [2, 4]


def test_binary_output_on_request_follows_the_json(basic):
    response = basic.infer(
        "plain",
        {
            "inputs": [tensor("INPUT0", [1, 2])],
            "outputs": [{"name": "OUTPUT0", "parameters": {"binary_data": True}}],
        },
    )
    head, data = split_binary(response)
    assert response.headers["Content-Type"] == "application/octet-stream"
    assert head["outputs"] == [
        {"name": "OUTPUT0", "datatype": "FP32", "shape": [2], "parameters": {"binary_data_size": 8}}
    ]
    assert np.frombuffer(data, "<f4").tolist() == [2, 4]


def test_binary_data_output_makes_every_output_binary(basic):
    response = basic.infer(
        "add_sub",
        {
            "parameters": {"binary_data_output": True},
            "inputs": [tensor("INPUT0", [1, 2, 3, 4], [1, 4]), tensor("INPUT1", [1] * 4, [1, 4])],
        },
    )
    head, data = split_binary(response)
    assert [entry["parameters"]["binary_data_size"] for entry in head["outputs"]] == [16, 16]
    assert np.frombuffer(data, "<f4").tolist() == [2, 3, 4, 5, 0, 1, 2, 3]


def test_output_that_refuses_binary_data_is_json_in_spite_of_binary_data_output(basic):
    response = basic.infer(
        "add_sub",
        {
            "parameters": {"binary_data_output": True},
            "inputs": [tensor("INPUT0", [1, 2, 3, 4], [1, 4]), tensor("INPUT1", [1] * 4, [1, 4])],
            "outputs": [
                {"name": "OUTPUT0", "parameters": {"binary_data": False}},
                {"name": "OUTPUT1", "parameters": {"binary_data": True}},
            ],
        },
    )
    head, data = split_binary(response)
    found = {entry["name"]: entry for entry in head["outputs"]}
    assert found["OUTPUT0"]["data"] == [2, 3, 4, 5]
    assert found["OUTPUT1"]["parameters"] == {"binary_data_size": 16}
    assert len(data) == 16


def test_binary_and_json_inputs_may_be_mixed(basic):
    data = np.array([1, 2, 3, 4], "<f4").tobytes()
    response = infer_binary(
        basic,
        "add_sub",
        {
            "inputs": [
                tensor("INPUT0", [10, 20, 30, 40], [1, 4]),
                binary_tensor("INPUT1", 16, [1, 4]),
            ]
        },
        data,
    )
    assert data_of(response) == [11, 22, 33, 44]


def test_binary_parts_follow_in_the_order_of_the_inputs(basic):
    first = np.array([1, 2, 3, 4], "<f4").tobytes()
    second = np.array([10, 20, 30, 40], "<f4").tobytes()
    response = infer_binary(
        basic,
        "add_sub",
        {"inputs": [binary_tensor("INPUT1", 16, [1, 4]), binary_tensor("INPUT0", 16, [1, 4])]},
        second + first,
    )
    assert data_of(response, "OUTPUT1") == [-9, -18, -27, -36]


def test_binary_and_json_outputs_may_be_mixed(basic):
    response = basic.infer(
        "add_sub",
        {
            "inputs": [tensor("INPUT0", [1, 2, 3, 4], [1, 4]), tensor("INPUT1", [1] * 4, [1, 4])],
            "outputs": [
                {"name": "OUTPUT0"},
                {"name": "OUTPUT1", "parameters": {"binary_data": True}},
            ],
        },
    )
    head, data = split_binary(response)
    found = {entry["name"]: entry for entry in head["outputs"]}
    assert found["OUTPUT0"]["data"] == [2, 3, 4, 5]
    assert np.frombuffer(data, "<f4").tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("dtype", list(SAMPLES))
def test_every_data_type_round_trips_in_binary(http, dtype):
    sample = SAMPLES[dtype]
    result = http.infer(
        f"identity_{dtype.lower()}",
        [http_input("INPUT0", sample, dtype)],
        outputs=[http_output("OUTPUT0", binary_data=True)],
    )
    found = result.as_numpy("OUTPUT0")
    assert found.shape == sample.shape
    assert found.dtype == sample.dtype
    assert np.array_equal(found, sample)
    assert result.get_output("OUTPUT0")["datatype"] == dtype


def test_bf16_round_trips_in_binary(basic):
    data = bytes(range(1, 9))
    response = infer_binary(
        basic,
        "identity_bf16",
        {
            "inputs": [binary_tensor("INPUT0", 8, [2, 2], "BF16")],
            "outputs": [{"name": "OUTPUT0", "parameters": {"binary_data": True}}],
        },
        data,
    )
    head, answer = split_binary(response)
    assert head["outputs"][0]["datatype"] == "BF16"
    assert answer == data


def test_bool_is_one_byte_for_each_element(basic):
    response = infer_binary(
        basic,
        "identity_bool",
        {"inputs": [binary_tensor("INPUT0", 3, [1, 3], "BOOL")]},
        b"\x01\x00\x01",
    )
    assert data_of(response) == [True, False, True]


def test_numbers_are_little_endian(basic):
    response = infer_binary(
        basic,
        "identity_int32",
        {"inputs": [binary_tensor("INPUT0", 4, [1, 1], "INT32")]},
        b"\x01\x02\x00\x00",
    )
    assert data_of(response) == [513]


def test_bytes_elements_have_a_four_byte_length_before_them(basic):
    data = pack_bytes(b"a", b"", b"long" * 100)
    response = infer_binary(
        basic,
        "identity_bytes",
        {
            "inputs": [binary_tensor("INPUT0", len(data), [1, 3], "BYTES")],
            "outputs": [{"name": "OUTPUT0", "parameters": {"binary_data": True}}],
        },
        data,
    )
    head, answer = split_binary(response)
    assert answer == data
    assert head["outputs"][0]["parameters"]["binary_data_size"] == len(data)


def test_bytes_elements_may_hold_any_byte(basic):
    data = pack_bytes(bytes(range(256)), b"\x00")
    response = infer_binary(
        basic,
        "identity_bytes",
        {
            "inputs": [binary_tensor("INPUT0", len(data), [2, 1], "BYTES")],
            "outputs": [{"name": "OUTPUT0", "parameters": {"binary_data": True}}],
        },
        data,
    )
    assert split_binary(response)[1] == data


def test_zero_bytes_are_allowed_for_zero_elements(basic):
    response = infer_binary(basic, "plain", {"inputs": [binary_tensor("INPUT0", 0, [0])]}, b"")
    assert outputs_of(response)["OUTPUT0"]["shape"] == [0]


@pytest.mark.parametrize("dtype", ["FP32", "INT8", "BYTES"])
def test_zero_element_output_may_be_binary(basic, dtype):
    response = infer_binary(
        basic,
        f"identity_{dtype.lower()}",
        {
            "inputs": [binary_tensor("INPUT0", 0, [1, 0], dtype)],
            "outputs": [{"name": "OUTPUT0", "parameters": {"binary_data": True}}],
        },
        b"",
    )
    head, data = split_binary(response)
    assert head["outputs"][0]["shape"] == [1, 0]
    assert head["outputs"][0]["parameters"] == {"binary_data_size": 0}
    assert data == b""


def test_fewer_bytes_than_announced_are_refused(basic):
    refused(
        infer_binary(basic, "plain", {"inputs": [binary_tensor("INPUT0", 8, [2])]}, TWO[:4]), 400
    )


def test_more_bytes_than_announced_are_refused(basic):
    refused(
        infer_binary(basic, "plain", {"inputs": [binary_tensor("INPUT0", 8, [2])]}, TWO + b"more"),
        400,
    )


@pytest.mark.parametrize("size", [4, 12])
def test_size_must_match_the_shape(basic, size):
    refused(
        infer_binary(
            basic, "plain", {"inputs": [binary_tensor("INPUT0", size, [2])]}, (TWO * 2)[:size]
        ),
        400,
    )


@pytest.mark.parametrize("size", [-8, "8", 8.5, None])
def test_binary_data_size_must_be_a_natural_number(basic, size):
    refused(infer_binary(basic, "plain", {"inputs": [binary_tensor("INPUT0", size, [2])]}, TWO))


def test_data_and_binary_data_size_exclude_each_other(basic):
    refused(basic.infer("plain", {"inputs": [tensor("INPUT0", [1, 2], binary_data_size=8)]}), 400)


@pytest.mark.parametrize("length", ["-5", "100000", "99999999999999999999"])
def test_header_length_outside_the_body_is_refused(basic, length):
    refused(
        infer_binary(
            basic, "plain", {"inputs": [binary_tensor("INPUT0", 8, [2])]}, TWO, length=length
        ),
        400,
    )


@pytest.mark.parametrize("length", ["10", "abc", "1"])
def test_header_length_that_cuts_the_json_is_refused(basic, length):
    refused(
        infer_binary(
            basic, "plain", {"inputs": [binary_tensor("INPUT0", 8, [2])]}, TWO, length=length
        )
    )


def test_header_length_may_end_after_trailing_spaces(basic):
    head = json.dumps({"inputs": [binary_tensor("INPUT0", 8, [2])]}).encode() + b"   "
    assert data_of(infer_binary(basic, "plain", head, TWO)) == [2, 4]


@pytest.mark.parametrize(
    "data",
    [
        pack_bytes(b"a") + b"\x00\x00",
        pack_bytes(b"a") + struct.pack("<I", 50),
        pack_bytes(b"a", b"b", b"c"),
        pack_bytes(b"a"),
        struct.pack("<I", 0xFFFFFFFF) + b"a",
    ],
)
def test_malformed_bytes_elements_are_refused(basic, data):
    refused(
        infer_binary(
            basic,
            "identity_bytes",
            {"inputs": [binary_tensor("INPUT0", len(data), [1, 2], "BYTES")]},
            data,
        ),
        400,
    )


def test_raw_binary_request_is_the_bytes_of_the_only_input(basic):
    response = basic.infer(
        "plain",
        TWO,
        headers={
            "Inference-Header-Content-Length": "0",
            "Content-Type": "application/octet-stream",
        },
    )
    head, data = split_binary(response)
    assert head["outputs"][0]["shape"] == [2]
    assert np.frombuffer(data, "<f4").tolist() == [2, 4]


def test_raw_binary_request_needs_whole_elements(basic):
    refused(basic.infer("plain", TWO[:7], headers={"Inference-Header-Content-Length": "0"}), 400)


def test_raw_binary_request_needs_a_model_with_one_input(basic):
    refused(
        basic.infer("add_sub_int32", TWO, headers={"Inference-Header-Content-Length": "0"}), 400
    )


def test_large_binary_tensor_round_trips(http):
    sample = np.random.default_rng(1).standard_normal((2, 1_000_000)).astype(np.float32)
    result = http.infer(
        "identity_fp32",
        [http_input("INPUT0", sample)],
        outputs=[http_output("OUTPUT0", binary_data=True)],
    )
    assert np.array_equal(result.as_numpy("OUTPUT0"), sample)


def test_client_can_build_and_parse_bodies_by_itself(basic):
    import tritonclient.http

    body, size = tritonclient.http.InferenceServerClient.generate_request_body(
        [http_input("INPUT0", np.array([3, 4], np.float32))],
        outputs=[http_output("OUTPUT0", binary_data=True)],
    )
    headers = {} if size is None else {"Inference-Header-Content-Length": str(size)}
    response = basic.infer("plain", bytes(body), headers=headers)
    length = response.headers["Inference-Header-Content-Length"]
    result = tritonclient.http.InferenceServerClient.parse_response_body(
        response.body, header_length=int(length)
    )
    assert result.as_numpy("OUTPUT0").tolist() == [6, 8]


def test_nan_and_infinity_survive_in_binary(http):
    sample = np.array([[np.nan, np.inf, -np.inf, -0.0]], np.float32)
    result = http.infer(
        "identity_fp32",
        [http_input("INPUT0", sample)],
        outputs=[http_output("OUTPUT0", binary_data=True)],
    )
    assert result.as_numpy("OUTPUT0").tobytes() == sample.tobytes()
