"""Hostile and malformed input: an error for the sender, and nothing else.

After every case the server must live and answer rightly.
"""

import json
import struct

import numpy as np
import pytest
import tritonclient.grpc.service_pb2 as pb
import tritonclient.grpc.service_pb2_grpc as pb_grpc
from conformance.protocol import (
    binary_tensor,
    data_of,
    grpc_input,
    infer_binary,
    pack_bytes,
    refused,
    tensor,
)

GOOD = json.dumps({"inputs": [tensor("INPUT0", [21])]}).encode()


@pytest.fixture(scope="module")
def server(launch):
    return launch(["plain", "add_sub", "faulty", "params_echo"])


@pytest.fixture(autouse=True)
def still_right(server):
    yield
    assert server.alive()
    assert data_of(server.infer("plain", GOOD)) == [42]


@pytest.fixture
def hardened(launcher):
    """For input that ends the tritonserver of version 2.51, or leaves it without an answer."""
    if launcher.kind == "triton":
        pytest.skip("the original server does not survive or answer this")


def post(body, extra=b"", length=None):
    return (
        b"POST /v2/models/plain/infer HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        + extra
        + b"Content-Length: %d\r\n\r\n" % (len(body) if length is None else length)
        + body
    )


def status(answer):
    assert answer.startswith(b"HTTP/1.1 "), answer[:200]
    return int(answer.split(b" ", 2)[1])


@pytest.mark.parametrize("cut", [1, 10, 30, len(GOOD) - 1])
def test_truncated_json_is_refused(server, cut):
    refused(server.infer("plain", GOOD[:cut]))


@pytest.mark.parametrize(
    "noise",
    [
        b"\xff\xfe\xfd",
        b"\x00" * 100,
        b"{" * 1000,
        b"[" * 1000,
        b'{"inputs":' * 100,
        b"nan",
        b'{"inputs":[{"name":"\xff\xfe"}]}',
        b"\xef\xbb\xbf" + b"{",
    ],
)
def test_noise_is_refused(server, noise):
    refused(server.infer("plain", noise))


def test_text_after_the_json_is_refused_or_ignored(server):
    response = server.infer("plain", GOOD + b" trailing")
    assert response.status == 200 or refused(response)


def test_json_that_is_nested_deeply_is_refused(server):
    depth = 500
    refused(
        server.infer(
            "plain",
            b'{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1],'
            b'"data":' + b"[" * depth + b'"x"' + b"]" * depth + b"}]}",
        )
    )


def test_json_that_is_nested_very_deeply_is_refused(server, hardened):
    refused(server.infer("plain", b'{"inputs":' + b"[" * 200_000 + b"]" * 200_000 + b"}"))


@pytest.mark.parametrize(
    "shape", [[-1], [-(2**63)], [2**64], [2**70], [1e30], [4294967296, 4294967296]]
)
def test_impossible_shape_is_refused(server, shape):
    refused(server.infer("plain", {"inputs": [tensor("INPUT0", [1], shape)]}))


@pytest.mark.parametrize("shape", [[2**63 - 1], [2**62], [2**40]])
def test_shape_that_needs_more_memory_than_there_is_is_refused(server, hardened, shape):
    refused(server.infer("plain", {"inputs": [tensor("INPUT0", [1], shape)]}))


@pytest.mark.parametrize("shape", [[2**62], [2**63 - 1], [2**32, 2**32], [2**31]])
def test_shape_that_overflows_is_refused_in_binary(server, shape):
    refused(
        infer_binary(server, "plain", {"inputs": [binary_tensor("INPUT0", 4, shape)]}, b"\0\0\0\0")
    )


@pytest.mark.parametrize("shape", [[2**62], [-1], [2**32, 2**32], [-(2**62)]])
def test_shape_that_overflows_is_refused_over_grpc(server, shape):
    import grpc

    request = pb.ModelInferRequest(model_name="plain", raw_input_contents=[b"\0\0\0\0"])
    request.inputs.add(name="INPUT0", datatype="FP32", shape=shape)
    with (
        grpc.insecure_channel(server.grpc_address) as channel,
        pytest.raises(grpc.RpcError) as error,
    ):
        pb_grpc.GRPCInferenceServiceStub(channel).ModelInfer(request, timeout=20)
    assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize("size", [2**31, 2**63 - 1, 2**64 - 1, 2**70])
def test_binary_size_larger_than_the_body_is_refused(server, size):
    refused(
        infer_binary(server, "plain", {"inputs": [binary_tensor("INPUT0", size, [1])]}, b"\0\0\0\0")
    )


@pytest.mark.parametrize(
    "name",
    [
        "..",
        "../plain",
        "..%2f..%2fetc%2fpasswd",
        "%2e%2e",
        "plain%00",
        "plain/../plain",
        "a" * 5000,
        "%",
        "%zz",
        "plain%20",
        "plain;x",
        "\u2603".encode().hex(),
    ],
)
def test_strange_model_name_is_refused(server, name):
    answer = server.raw(
        f"GET /v2/models/{name} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()
    )
    assert 400 <= status(answer) < 500


@pytest.mark.parametrize("name", ["..", "../plain", "", "a" * 5000, "pl\u2603in", "plain\0"])
def test_strange_model_name_is_refused_over_grpc(server, name):
    import grpc

    with grpc.insecure_channel(server.grpc_address) as channel:
        stub = pb_grpc.GRPCInferenceServiceStub(channel)
        with pytest.raises(grpc.RpcError) as error:
            stub.ModelInfer(pb.ModelInferRequest(model_name=name), timeout=20)
        assert error.value.code() in (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.INVALID_ARGUMENT)


@pytest.mark.parametrize(
    "line",
    [
        b"NONSENSE\r\n\r\n",
        b"GET\r\n\r\n",
        b"\r\n\r\n\r\n",
        b"G\xffT /v2 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /v2 HTTP/1.1\r\nno colon\r\n\r\n",
    ],
)
def test_bytes_that_are_no_http_do_no_harm(server, line):
    answer = server.raw(line, timeout=2, close_write=True)
    assert answer == b"" or status(answer) >= 200


def test_very_long_header_does_no_harm(server):
    answer = server.raw(
        b"GET /v2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Long: "
        + b"a" * 200_000
        + b"\r\n\r\n",
        timeout=10,
    )
    assert answer == b"" or status(answer) in (200, 400, 413, 431)


def test_very_long_path_does_no_harm(server):
    answer = server.raw(
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", timeout=10
    )
    assert answer == b"" or 400 <= status(answer) < 500


def test_many_headers_do_no_harm(server):
    headers = b"".join(b"X-%d: y\r\n" % number for number in range(1000))
    answer = server.raw(
        b"GET /v2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + headers + b"\r\n", timeout=10
    )
    assert answer == b"" or status(answer) in (200, 400, 413, 431)


@pytest.mark.parametrize("length", [b"-1", b"abc", b"99999999999999999999"])
def test_impossible_content_length_does_no_harm(server, length):
    answer = server.raw(
        b"POST /v2/models/plain/infer HTTP/1.1\r\nHost: x\r\n"
        b"Connection: close\r\nContent-Length: " + length + b"\r\n\r\n" + GOOD,
        timeout=2,
        close_write=True,
    )
    assert answer == b"" or status(answer) >= 400


def test_body_that_ends_early_does_no_harm(server):
    server.raw(post(GOOD[:10], length=len(GOOD)), timeout=1, close_write=True)


def test_chunked_body_is_understood(server):
    chunks = (
        b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (GOOD[:7], GOOD[7:20], GOOD[20:]))
        + b"0\r\n\r\n"
    )
    answer = server.raw(
        b"POST /v2/models/plain/infer HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n" + chunks
    )
    assert status(answer) == 200
    assert answer.endswith(b'"data":[42.0]}]}')


@pytest.mark.parametrize("chunk", [b"zz\r\nabc\r\n", b"-5\r\nabc\r\n", b"ffffffffffffffff\r\nabc"])
def test_malformed_chunks_do_no_harm(server, chunk):
    answer = server.raw(
        b"POST /v2/models/plain/infer HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n" + chunk,
        timeout=2,
        close_write=True,
    )
    assert answer == b"" or status(answer) >= 400


def test_two_requests_in_one_packet_are_both_answered(server, hardened):
    one = b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n"
    last = b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    import socket

    with socket.create_connection(("127.0.0.1", server.http_port), timeout=10) as sock:
        sock.sendall(one + last)
        data = b""
        while True:
            part = sock.recv(4096)
            if not part:
                break
            data += part
    assert data.count(b"HTTP/1.1 200") == 2


def in_pieces(server, pieces):
    import socket

    with socket.create_connection(("127.0.0.1", server.http_port), timeout=10) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in pieces:
            sock.sendall(piece)
        data = b""
        while b"42.0" not in data:
            part = sock.recv(4096)
            assert part, data
            data += part


def test_body_that_comes_in_pieces_is_understood(server):
    message = post(GOOD)
    head = message.index(b"\r\n\r\n") + 4
    in_pieces(
        server,
        [message[:head]] + [message[index : index + 3] for index in range(head, len(message), 3)],
    )


def test_head_that_comes_in_pieces_is_understood(server, hardened):
    message = post(GOOD)
    in_pieces(server, [message[index : index + 3] for index in range(0, len(message), 3)])


def test_expect_100_continue_is_answered(server):
    import socket

    head = (
        b"POST /v2/models/plain/infer HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(GOOD)
    )
    with socket.create_connection(("127.0.0.1", server.http_port), timeout=10) as sock:
        sock.sendall(head)
        assert sock.recv(4096).startswith(b"HTTP/1.1 100")
        sock.sendall(GOOD)
        data = b""
        while b"42.0" not in data:
            part = sock.recv(4096)
            assert part, data
            data += part


def test_idle_connections_do_not_block_others(server):
    import socket

    idle = [socket.create_connection(("127.0.0.1", server.http_port)) for _ in range(50)]
    try:
        assert data_of(server.infer("plain", GOOD)) == [42]
    finally:
        for sock in idle:
            sock.close()


def test_connection_that_is_cut_while_it_is_answered_does_no_harm(server):
    import socket

    for _ in range(20):
        sock = socket.create_connection(("127.0.0.1", server.http_port))
        sock.sendall(post(GOOD))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()


def test_bytes_element_that_claims_four_gigabytes_is_refused(server):
    data = struct.pack("<I", 0xFFFFFFFF) + b"abc"
    refused(
        infer_binary(
            server, "faulty", {"inputs": [binary_tensor("MODE", len(data), [1], "BYTES")]}, data
        ),
        400,
    )


def test_bytes_elements_that_are_no_utf8_are_the_models_matter(server):
    data = pack_bytes(b"\xff\xfe")
    refused(
        infer_binary(
            server, "faulty", {"inputs": [binary_tensor("MODE", len(data), [1], "BYTES")]}, data
        ),
        500,
    )


def test_output_bytes_that_are_no_utf8_do_no_harm(server):
    response = server.infer(
        "params_echo", {"id": "\u2603", "inputs": [tensor("INPUT0", [1], [1, 1], "INT32")]}
    )
    assert response.json["id"] == "\u2603"


def test_very_long_request_id_comes_back(server):
    response = server.infer("plain", {"id": "i" * 100_000, "inputs": [tensor("INPUT0", [1])]})
    assert response.json["id"] == "i" * 100_000


def test_many_inputs_are_refused(server):
    refused(
        server.infer(
            "plain", {"inputs": [tensor(f"INPUT{number}", [1]) for number in range(2000)]}
        ),
        400,
    )


def test_many_errors_do_not_leak_the_connection(server):
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=20)
    for _ in range(100):
        connection.request("POST", "/v2/models/plain/infer", b"{")
        assert connection.getresponse().read()
    connection.request("POST", "/v2/models/plain/infer", GOOD)
    assert b"42.0" in connection.getresponse().read()
    connection.close()


def test_grpc_message_of_noise_does_no_harm(server):
    import grpc

    with grpc.insecure_channel(server.grpc_address) as channel:
        for method in ("ModelInfer", "ModelMetadata", "RepositoryModelLoad", "TraceSetting"):
            call = channel.unary_unary(
                f"/inference.GRPCInferenceService/{method}",
                request_serializer=bytes,
                response_deserializer=bytes,
            )
            with pytest.raises(grpc.RpcError):
                call(b"\xff" * 50, timeout=20)


def test_grpc_port_that_gets_http_does_no_harm(server):
    server.raw(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", timeout=1, port=server.grpc_port)
    result = server.grpc_client().infer("plain", [grpc_input("INPUT0", np.array([1], np.float32))])
    assert result.as_numpy("OUTPUT0")[0] == 2
