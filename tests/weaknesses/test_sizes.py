"""Numbers that a client claims: nothing is allocated, multiplied or divided before they are checked."""

import gzip
import json
import struct

import grpc
import pytest
import tritonclient.grpc.service_pb2 as pb

OVERFLOWS = [[2**62], [2**63 - 1], [2**32, 2**32], [2**31, 2**31, 4], [2**40]]


@pytest.mark.parametrize("shape", OVERFLOWS)
def test_the_product_of_a_shape_does_not_overflow(server, shape):
    """CVE-2025-23323, 23324, 23326, 23327; CVE-2026-24173, 24174, 24175."""
    tensor = {"name": "x", "datatype": "FP32", "shape": shape}
    text = json.dumps({"inputs": [tensor | {"parameters": {"binary_data_size": 4}}]}).encode()
    size = {"Inference-Header-Content-Length": str(len(text))}
    wanted = pb.ModelInferRequest(model_name="echo", raw_input_contents=[bytes(4)])
    wanted.inputs.add(**tensor)

    assert server.infer({"inputs": [tensor | {"data": [1]}]}).status == 400
    assert server.infer(text + bytes(4), headers=size).status == 400
    assert server.refused("ModelInfer", wanted).code() is grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize("size", [5, 2**31, 2**32, 2**63 - 1, 2**63, 2**64, 10**30, -1])
def test_a_tensor_does_not_reach_beyond_its_body(server, size):
    """CVE-2025-23328, out of bounds."""
    tensor = {
        "name": "x",
        "datatype": "FP32",
        "shape": [1],
        "parameters": {"binary_data_size": size},
    }
    text = json.dumps({"inputs": [tensor]}).encode()

    answer = server.infer(
        text + bytes(4), headers={"Inference-Header-Content-Length": str(len(text))}
    )

    assert answer.status == 400


@pytest.mark.parametrize("size", ["-1", "99999", "9" * 30, "0x10", "1e3", "2147483648"])
def test_a_length_in_a_header_is_a_number_within_its_body(server, document, size):
    answer = server.infer(document(1.0), headers={"Inference-Header-Content-Length": size})

    assert answer.status == 400


@pytest.mark.parametrize(("model", "shape"), [("echo", [0]), ("rows", [0, 2]), ("words", [0])])
def test_a_size_of_zero_causes_no_division_by_zero(server, model, shape):
    """CVE-2025-23321."""
    datatype = "BYTES" if model == "words" else "FP32"
    tensor = {"name": "x", "datatype": datatype, "shape": shape, "data": []}

    answer = server.infer({"inputs": [tensor]}, model)

    assert answer.status in (200, 400)
    assert server.infer({"inputs": [tensor | {"shape": [*shape, 0]}]}, model).status == 400


def test_a_length_that_is_only_claimed_takes_no_memory(server, resident):
    """CVE-2025-23331: malformed sizes made the server allocate."""
    head = b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: x\r\n"
    claims = b"Inference-Header-Content-Length: 10\r\nContent-Length: 2000000000\r\n\r\n{"
    element = struct.pack("<I", 2**32 - 1) + b"x"
    words = pb.ModelInferRequest(model_name="words", raw_input_contents=[element])
    words.inputs.add(name="x", datatype="BYTES", shape=[1])
    before = resident()

    connections = [server.open(head + claims) for _ in range(8)]
    for _ in range(8):
        assert server.refused("ModelInfer", words).code() is grpc.StatusCode.INVALID_ARGUMENT

    assert resident() - before < 64 * 2**20
    for each in connections:
        each.close()


def test_elements_of_bytes_are_counted_in_the_bytes_that_came(server):
    words = pb.ModelInferRequest(model_name="words", raw_input_contents=[b"\1\0\0"])
    words.inputs.add(name="x", datatype="BYTES", shape=[2**40])

    assert server.refused("ModelInfer", words).code() is grpc.StatusCode.INVALID_ARGUMENT


def test_a_batch_is_no_larger_than_its_model_takes(server):
    rows = {"name": "x", "datatype": "FP32", "shape": [5, 2], "data": [0] * 10}

    answer = server.infer({"inputs": [rows]}, "rows")

    assert (answer.status, "batch-size must be <= 4" in answer.text) == (400, True)


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1, 10**40, 1e400])
def test_numbers_in_json_are_those_of_their_datatype(server, value):
    tensor = {
        "name": "x",
        "datatype": "FP32",
        "shape": [1],
        "data": ["1" if value == 1e400 else value],
    }
    wanted = json.dumps({"inputs": [tensor], "parameters": {"timeout": value}}).replace(
        "Infinity", "1e999"
    )

    assert server.infer(wanted.encode()).status == 400


def test_a_bomb_is_unpacked_no_further_than_its_limit(serve, resident):
    served = serve(http_max_input_size=2**20)
    bomb = gzip.compress(b" " * 100_000_000, 1)
    before = resident()

    for _ in range(4):
        answer = served.infer(bomb, headers={"Content-Encoding": "gzip"})
        assert (answer.status, "Decompressed data size exceeds" in answer.text) == (400, True)

    assert resident() - before < 48 * 2**20  # nothing of a refused one is kept


def test_a_bomb_over_grpc_is_unpacked_no_further_than_its_limit(serve, resident):
    served = serve(grpc_max_message_size=2**20)
    bomb = pb.ModelInferRequest(model_name="echo", raw_input_contents=[bytes(50_000_000)])
    before = resident()

    with pytest.raises(grpc.RpcError) as error:
        served.stub.ModelInfer(bomb, timeout=30, compression=grpc.Compression.Gzip)

    assert error.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert resident() - before < 200 * 2**20  # this process is the client too


def test_a_body_is_no_larger_than_its_limit(serve, message):
    """CVE-2025-33201 and CVE-2024-53880: a large payload raised an unexpected error, or overflowed."""
    served = serve(http_max_body_size=10_000, grpc_max_message_size=10_000)
    tensor = {
        "name": "x",
        "datatype": "FP32",
        "shape": [5000],
        "parameters": {"binary_data_size": 20_000},
    }
    text = json.dumps({"inputs": [tensor]}).encode()
    size = {"Inference-Header-Content-Length": str(len(text))}

    answer = served.infer(text + bytes(20_000), headers=size)
    loading = served.ask(
        "POST",
        "/v2/repository/models/new/load",
        {"parameters": {"config": "{}", "file:1/model.onnx": "A" * 20_000}},
    )

    assert (answer.status, loading.status) == (400, 400)
    assert "exceeds the maximum of 10000 bytes; --http-max-body-size has set it" in answer.text
    assert "exceeds the maximum of 10000 bytes" in loading.text
    refusal = served.refused("ModelInfer", message(*[0.0] * 5000))
    assert refusal.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
