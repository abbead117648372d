"""A hundred thousand bad requests: each is refused, nothing is lost, nothing is kept."""

import itertools
import json
import pathlib
import socket
import struct

import grpc
import numpy as np
import pytest
import tritonclient.grpc.service_pb2 as pb
from conformance.protocol import pack_bytes

MANY = 50_000
GROWTH = 12 * 2**20  # bytes; allocators keep some of what they once needed
GOOD = json.dumps(
    {"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1], "data": [21]}]}
).encode()


@pytest.fixture(scope="module")
def server(launch_for_all):
    return launch_for_all(["plain", "add_sub", "faulty", "params_echo"])


def memory(server):
    """Bytes that the server's own process holds."""
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) * 1024


def tensor(**members):
    return {"name": "INPUT0", "datatype": "FP32", "shape": [1], "data": [1], **members}


def body(*inputs, **more):
    return json.dumps({"inputs": list(inputs), **more}).encode()


BAD_BODIES = [
    b"{",
    b"null",
    b"\xff\xfe",
    b"[" * 3000,
    GOOD[:-3],
    body(),
    body(tensor(name="WRONG")),
    body(tensor(), tensor()),
    body(tensor(shape=[2])),
    body(tensor(shape=[2**62])),
    body(tensor(shape=[-1])),
    body(tensor(shape="1")),
    body(tensor(datatype="INT32")),
    body(tensor(datatype="NOTHING")),
    body(tensor(data=["x"])),
    body(tensor(data=[[[[1, 2]]]])),
    body(tensor(parameters={"binary_data_size": 4})),
    body(tensor(), outputs=[{"name": "WRONG"}]),
    body(tensor(), parameters={"triton_x": 1}),
    body(tensor(), parameters={"a": {}}),
    body(tensor(), id=7),
]


def http_messages():
    """Requests as bytes, every kind of malformed body in turn; every thousandth request is good."""
    head = "POST /v2/models/{}/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n{}\r\n"
    binary = (
        b'{"inputs":[{"name":"MODE","datatype":"BYTES","shape":[1],'
        b'"parameters":{"binary_data_size":%d}}]}'
    )
    wire = struct.pack("<I", 2**31) + b"x"
    others = [
        (
            "faulty",
            (binary % len(wire)) + wire,
            f"Inference-Header-Content-Length: {len(binary % 5)}\r\n",
        ),
        ("plain", GOOD, "Content-Encoding: gzip\r\n"),
        ("plain", GOOD, "Content-Encoding: nothing\r\n"),
        ("plain", GOOD, "Inference-Header-Content-Length: 9999\r\n"),
        ("absent", GOOD, ""),
        ("add_sub", GOOD, ""),
    ]
    bad = [("plain", text, "") for text in BAD_BODIES] + others
    for number, (model, text, headers) in enumerate(itertools.cycle(bad)):
        if number % 1000 == 999:
            model, text, headers = "plain", GOOD, ""
        yield head.format(model, len(text), headers).encode() + text


def answer(stream):
    """(status, body) of the next HTTP answer of a connection."""
    status = int(stream.readline().split()[1])
    length = 0
    while (line := stream.readline()) != b"\r\n":
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return status, stream.read(length)


def send_http(server, messages, count):
    with socket.create_connection(("127.0.0.1", server.http_port), timeout=60) as connection:
        stream = connection.makefile("rb")
        for number, message in enumerate(itertools.islice(messages, count)):
            connection.sendall(message)
            status, text = answer(stream)
            if message.endswith(b"\r\n\r\n" + GOOD) and b"/plain/" in message and status == 200:
                assert b"42.0" in text
            else:
                assert 400 <= status < 502, (number, message[:300], status, text)
                assert json.loads(text)["error"]


def test_bad_http_requests_are_refused_and_leave_nothing_behind(server):
    messages = http_messages()
    send_http(server, messages, 3000)
    before = memory(server)

    send_http(server, messages, MANY)

    assert memory(server) - before < GROWTH
    assert server.infer("plain", GOOD).status == 200


def grpc_messages():
    def request(model="plain", raw=(), **members):
        message = pb.ModelInferRequest(model_name=model, raw_input_contents=list(raw))
        message.inputs.add(**{"name": "INPUT0", "datatype": "FP32", "shape": [1], **members})
        return message

    wrong_contents = request()
    wrong_contents.inputs[0].contents.int_contents.append(1)
    unknown_output = request(raw=[bytes(4)])
    unknown_output.outputs.add(name="WRONG")
    bad = [
        request(),
        request(raw=[bytes(3)]),
        request(raw=[bytes(8)]),
        request(raw=[bytes(4)], shape=[2**62]),
        request(raw=[bytes(4)], shape=[-1]),
        request(raw=[bytes(4)], name="WRONG"),
        request(raw=[bytes(4)], datatype="INT32"),
        request(raw=[bytes(4)], datatype="NOTHING"),
        request(raw=[bytes(4)], model="absent"),
        request(raw=[pack_bytes(b"a", b"b")], model="faulty", name="MODE", datatype="BYTES"),
        wrong_contents,
        unknown_output,
        pb.ModelInferRequest(model_name="plain"),
        pb.ModelInferRequest(),
    ]
    noise = [b"\xff" * 50, b"\x0a\xff\xff\xff\x7f"]
    return [message.SerializeToString() for message in bad] + noise


def send_grpc(call, messages, count):
    refused = 0
    pending = []
    for message in itertools.islice(itertools.cycle(messages), count):
        pending.append(call.future(message, timeout=60))
        if len(pending) == 64:
            refused += sum(future.exception() is not None for future in pending)
            pending.clear()
    return refused + sum(future.exception() is not None for future in pending)


def test_bad_grpc_requests_are_refused_and_leave_nothing_behind(server):
    messages = grpc_messages()
    with grpc.insecure_channel(server.grpc_address) as channel:
        call = channel.unary_unary(
            "/inference.GRPCInferenceService/ModelInfer",
            request_serializer=bytes,
            response_deserializer=bytes,
        )
        assert send_grpc(call, messages, 3000) == 3000
        before = memory(server)

        assert send_grpc(call, messages, MANY) == MANY

        assert memory(server) - before < GROWTH
        good = pb.ModelInferRequest(
            model_name="plain", raw_input_contents=[np.float32(21).tobytes()]
        )
        good.inputs.add(name="INPUT0", datatype="FP32", shape=[1])
        answer = pb.ModelInferResponse.FromString(call(good.SerializeToString(), timeout=20))
        assert np.frombuffer(answer.raw_output_contents[0], np.float32) == 42
